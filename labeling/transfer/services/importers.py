"""Labels from other tools' exports, through the same import as our own files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from common.jsonl import Fields, Ignored, ImportResult
from common.problems import FieldProblem, ImportProblem
from labeling.rating.core.answers import LabelLine
from labeling.rating.services.references import criteria_by_key
from labeling.transfer.core.answers import Tally, latest_only
from labeling.transfer.core.argilla import argilla_lines
from labeling.transfer.core.label_studio import label_studio_lines
from labeling.transfer.core.mapping import ForeignMap, read_mapping
from labeling.transfer.core.records import read_objects, record_problem
from labeling.transfer.services.labels import labels_take

Reader = Callable[[Fields, ForeignMap, Tally], Iterable[list[LabelLine]]]
TOOLS: Mapping[str, Reader] = {"label-studio": label_studio_lines, "argilla": argilla_lines}


class _ForeignFile:
    """An export of another tool as labels."""

    unit = "record"

    def __init__(self, path: Path, reader: Reader, mapping: ForeignMap) -> None:
        self.path, self.reader, self.mapping = path, reader, mapping
        self.ignored, self.tally = Ignored(), Tally()

    def lines(self) -> Iterator[tuple[int, LabelLine]]:
        """Record numbers and labels; the file is read twice, for a later record may answer a chat anew."""
        self.tally = Tally()
        return latest_only(self._people, self.tally)

    def _people(self, tally: Tally) -> Iterator[tuple[int, Sequence[LabelLine]]]:
        """Record numbers and one person's labels; unknown choices are refused, all at once."""
        for number, record in read_objects(self.path):
            try:
                for labels in self.reader(record, self.mapping, tally):
                    if labels:
                        yield number, labels
            except FieldProblem as problem:
                raise self.problem(number, problem.field, problem.message) from None
        if refusal := tally.unknown.refusal():
            raise ImportProblem(str(self.path), None, "", refusal)

    def problem(self, number: int, field: str, message: str) -> ImportProblem:
        """What is wrong with a record."""
        return record_problem(self.path, number, field, message)

    def notes(self) -> tuple[str, ...]:
        """What was passed over."""
        return self.tally.notes(self.mapping)


def foreign_labels_import(*, path: Path, tool: str, mapping_path: Path) -> ImportResult:
    """
    Add the labels of another tool's export, or revise those that it answers differently.

    Parameters
    ----------
    path : a JSON array of records, or JSON Lines; no pipe, for it is read twice.
    tool : one of TOOLS.
    mapping_path : which question is which criterion, and what its choices mean.

    Raises ImportProblem: nothing is written then.
    """
    if path.is_fifo():
        raise ImportProblem(str(path), None, "", "is a pipe; save the export to a file: it is read twice")
    mapping = read_mapping(mapping_path)
    known = criteria_by_key()
    for criterion in mapping.criteria:
        if criterion.key not in known:
            raise ImportProblem(str(mapping_path), None, f"criteria.{criterion.key}", "no such criterion")
    return labels_take(file=_ForeignFile(path, TOOLS[tool], mapping))
