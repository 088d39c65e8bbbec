"""Adjudications from files: a new decision replaces the one in force, the same decision changes nothing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from labeling.core.answers import AdjudicationLine, adjudication_line_of
from labeling.core.importing import Ignored, ImportResult, in_batches, read_records
from labeling.core.problems import FieldProblem, ImportProblem
from labeling.models.labels import Adjudication
from labeling.selectors.chats import chats_by_external_id
from labeling.services.answers import chat_named, check_answer, criteria_by_key, criterion_named
from labeling.services.consensus import consensus_refresh

LINES_AT_ONCE = 1000

Cell = tuple[int, int]  # chat, criterion


@transaction.atomic
def adjudications_import(*, path: Path) -> ImportResult:
    """
    Add the decisions of a file; one that differs from the decision in force replaces it. Consensus follows.

    Raises ImportProblem: nothing is written then.
    """
    importer = _AdjudicationsImport(path)
    lines = read_records(path, lambda fields: adjudication_line_of(fields, importer.ignored))
    for chunk in in_batches(lines, LINES_AT_ONCE):
        importer.store(chunk)
    cells = importer.changed
    consensus_refresh(criterion_ids={cell[1] for cell in cells}, chat_ids={cell[0] for cell in cells})
    return ImportResult(
        created=importer.counts["created"],
        unchanged=importer.counts["unchanged"],
        updated=importer.counts["updated"],
        ignored=importer.ignored.counts,
    )


class _AdjudicationsImport:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.ignored = Ignored()
        self.counts: Counter[str] = Counter()
        self.changed: list[Cell] = []
        self.criteria = criteria_by_key()
        self.lines: dict[Cell, int] = {}  # decisions are few: a lead writes each by hand
        self.now = timezone.now()

    def store(self, chunk: Sequence[tuple[int, AdjudicationLine]]) -> None:
        """Create or replace the decisions of some lines."""
        decisions = self._resolve(chunk)
        current = Adjudication.objects.select_for_update(of=("self",)).filter(
            chat_id__in={chat for chat, _ in decisions},
            criterion_id__in={criterion for _, criterion in decisions},
            replaced_at=None,
        )
        known = {(row.chat_id, row.criterion_id): row for row in current}
        changed = {cell: row for cell, row in decisions.items() if not _same(row, known.get(cell))}
        replaced = [known[cell].pk for cell in changed if cell in known]
        Adjudication.objects.filter(pk__in=replaced).update(replaced_at=self.now)
        Adjudication.objects.bulk_create(changed.values())
        self.changed += changed
        self.counts.update(
            created=len(changed) - len(replaced),
            updated=len(replaced),
            unchanged=len(decisions) - len(changed),
        )

    def _resolve(self, chunk: Sequence[tuple[int, AdjudicationLine]]) -> dict[Cell, Adjudication]:
        chats = chats_by_external_id({line.chat_id for _, line in chunk})
        decisions: dict[Cell, Adjudication] = {}
        for number, line in chunk:
            try:
                chat = chat_named(line.chat_id, chats)
                criterion = criterion_named(line.criterion, self.criteria)
                check_answer(line.value, criterion, criterion.newest)
                cell = (chat.id, criterion.id)
                if cell in self.lines:
                    message = f"the same chat and criterion stand on line {self.lines[cell]} already"
                    raise FieldProblem("criterion", message)
            except FieldProblem as problem:
                raise ImportProblem(str(self.path), number, problem.field, problem.message) from None
            self.lines[cell] = number
            decisions[cell] = self._row(cell, line)
        return decisions

    def _row(self, cell: Cell, line: AdjudicationLine) -> Adjudication:
        return Adjudication(
            chat_id=cell[0],
            criterion_id=cell[1],
            value=line.value,
            reason=line.reason,
            by_name=line.adjudicated_by,
            created_at=line.created_at or self.now,
        )


def _same(new: Adjudication, old: Adjudication | None) -> bool:
    return old is not None and (new.value, new.reason, new.by_name) == (old.value, old.reason, old.by_name)
