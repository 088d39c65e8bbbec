"""Lines of labels, verdicts, criteria and articles from the rows of a file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from common.imports import Target
from common.problems import FieldProblem
from labeling.transfer.core.columns import CRITERION, ColumnMapping
from labeling.transfer.core.rows import Row, cell_of, flat, is_blank

ANSWER = Target("value", "Answer", "answer")


def plain_lines(
    rows: Iterable[Row],
    mapping: ColumnMapping,
    targets: Sequence[Target],
    defaults: Mapping[str, Any],
) -> Iterator[Row]:
    """
    Yield the number of each row and a line from its cells, or a problem.

    A row gives one line, or one for each column with the answers to a criterion. `defaults` fills fields that
    the row lacks.
    """
    fields = {target.key: target for target in targets}
    for number, row in rows:
        if isinstance(row, FieldProblem):
            yield number, row
            continue
        try:
            yield from ((number, line) for line in _lines(flat(row), mapping, fields, defaults))
        except FieldProblem as problem:
            yield number, problem


def _lines(
    row: Mapping[str, Any],
    mapping: ColumnMapping,
    fields: Mapping[str, Target],
    defaults: Mapping[str, Any],
) -> list[dict[str, Any]]:
    line = dict(defaults)
    answers: list[dict[str, Any]] = []
    wide = False
    for column, key in mapping.columns.items():
        value = row.get(column)
        if key.startswith(CRITERION):
            wide = True
            if not is_blank(value):
                answer = cell_of(value, ANSWER, column)
                answers.append({"criterion": key.removeprefix(CRITERION), "value": answer})
        elif key in fields and not is_blank(value):
            line[key] = cell_of(value, fields[key], column)
        elif key in fields and fields[key].cell == "answer" and column in row and value is None:
            line[key] = None
    for key, target in fields.items():
        if target.required and key not in line and not (wide and key in ("criterion", "value")):
            columns = mapping.of(key)
            raise FieldProblem(columns[0] if columns else target.label, "is empty")
    return [line | answer for answer in answers] if wide else [line]


def missing_columns(mapping: ColumnMapping, targets: Sequence[Target], defaults: Mapping[str, Any]) -> str:
    """Return what no column fills although every line needs it, "" where nothing lacks."""
    wide = any(key.startswith(CRITERION) for key in mapping.columns.values())
    for target in targets:
        columns = mapping.of(target.key)
        if len(columns) > 1:
            return f"Two columns are marked as {target.label.lower()}: {', '.join(columns)}."
        if wide and target.key in ("criterion", "value"):
            continue
        if target.required and not columns and not defaults.get(target.key):
            return f"Choose the column with the {target.label.lower()}."
    return ""
