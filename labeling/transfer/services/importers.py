"""Import of labels from other tools' exports, through the import of our own files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from common.import_watch import import_watch
from common.jsonl import Fields, Ignored, ImportResult
from common.problems import FieldProblem, ImportProblem
from labeling.rating.core.answers import LabelLine
from labeling.rating.services.references import criteria_by_key
from labeling.transfer.core.answers import Tally, latest_only
from labeling.transfer.core.argilla import argilla_lines
from labeling.transfer.core.label_studio import label_studio_lines
from labeling.transfer.core.mapping import ImportMapping, read_mapping
from labeling.transfer.core.records import read_objects, record_problem
from labeling.transfer.services.labels import labels_take

Reader = Callable[[Fields, ImportMapping, Tally], Iterable[list[LabelLine]]]
TOOLS: Mapping[str, Reader] = {"label-studio": label_studio_lines, "argilla": argilla_lines}


class _ToolExport:
    """The labels of another tool's export."""

    unit = "record"

    def __init__(self, path: Path, reader: Reader, mapping: ImportMapping) -> None:
        self.path, self.reader, self.mapping = path, reader, mapping
        self.ignored, self.tally = Ignored(), Tally()

    def lines(self) -> Iterator[tuple[int, LabelLine]]:
        """Yield record numbers and labels; reads the file twice, as a later record may replace an answer."""
        self.tally = Tally()
        return latest_only(self._responses, self.tally)

    def _responses(self, tally: Tally) -> Iterator[tuple[int, Sequence[LabelLine]]]:
        """Yield record numbers and one response's labels; report all unknown choices together."""
        for number, record in read_objects(self.path):
            try:
                for labels in self.reader(record, self.mapping, tally):
                    if labels:
                        yield number, labels
            except FieldProblem as problem:
                import_watch().refuse(self.problem(number, problem.field, problem.message))
        if refusal := tally.unknown.refusal():
            raise ImportProblem(str(self.path), None, "", refusal)

    def problem(self, number: int, field: str, message: str) -> ImportProblem:
        """Return the error about a record."""
        return record_problem(self.path, number, field, message)

    def notes(self) -> tuple[str, ...]:
        """Return notes on skipped answers."""
        return self.tally.notes(self.mapping)


def tool_labels_import(
    *, path: Path, tool: str, mapping_path: Path, replace_accounts: bool = False
) -> ImportResult:
    """
    Add the labels of another tool's export, and revise those with a different answer.

    Parameters
    ----------
    path : a JSON array of records, or JSON Lines; not a pipe, as it is read twice.
    tool : one of TOOLS.
    mapping_path : maps questions to criteria and choices to answers.
    replace_accounts : see `labels_import`.

    Raises ImportProblem; no data is written then.
    """
    if path.is_fifo():
        raise ImportProblem(str(path), None, "", "is a pipe; save the export to a file first")
    mapping = read_mapping(mapping_path)
    known = criteria_by_key()
    for criterion in mapping.criteria:
        if criterion.key not in known:
            raise ImportProblem(str(mapping_path), None, f"criteria.{criterion.key}", "no such criterion")
    export = _ToolExport(path, TOOLS[tool], mapping)
    return labels_take(file=export, replace_accounts=replace_accounts)
