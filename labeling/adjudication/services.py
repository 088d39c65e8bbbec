"""Adjudications from page, API and files; a new decision replaces the current one, history is kept."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from common.jsonl import NAME_LIMIT, Ignored, ImportResult, in_batches, iso, read_records
from common.problems import FieldProblem, ImportProblem, shown
from labeling.chats.queries import chats_by_external_id
from labeling.consensus.services.consensus import consensus_refresh, criteria_lock
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit, audit_all, audit_import, operator_name
from labeling.rating.core.answers import ANSWER_WORDS, AdjudicationLine, adjudication_line_of
from labeling.rating.services.references import (
    chat_named,
    check_answer,
    criteria_by_key,
    criterion_named,
    origin_named,
)

LINES_AT_ONCE = 1000
REASON_LIMIT = 10_000

Cell = tuple[int, int]  # chat, criterion


class DecidedMeanwhileError(Exception):
    """The current decision is not the one that the lead saw; `current` is None after a withdrawal."""

    def __init__(self, current: Adjudication | None) -> None:
        who = f"{current.by_name} has decided" if current else "the decision was withdrawn"
        super().__init__(f"While you were reading, {who}.")
        self.current = current


# ---------- a lead decides ----------


@transaction.atomic
def adjudication_decide(
    *, chat: Chat, criterion: Criterion, value: bool | None, reason: str, by: User, seen: int | None
) -> Adjudication:
    """
    Save a decision and update the consensus in the same transaction; labels do not change.

    `seen` is the id of the decision that the lead saw (None: none). Repeating the same decision by the same
    lead changes nothing.

    Raises FieldProblem: a reason that is blank or too long, "not applicable" where it is not allowed.
    Raises DecidedMeanwhileError: the current decision is not `seen`; no data is written then.
    """
    criteria_lock(criterion_ids=[criterion.pk])
    _check(criterion, value, reason)
    cell, now = (chat.pk, criterion.pk), timezone.now()
    row = Adjudication(
        chat=chat,
        criterion=criterion,
        value=value,
        reason=reason.strip(),
        by=by,
        by_name=_name_of(by),
        created_at=now,
    )
    current = _in_force([cell]).get(cell)
    if current is not None and _same(row, current):
        return current
    if (current.pk if current else None) != seen:
        raise DecidedMeanwhileError(current)
    _replace({cell: row}, [current] if current else [], now)
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
    # NB: without the answer: readers of the log may not be allowed to see holdout.
    audit(actor=by, verb="label adjudicated", obj=row, **_named(row), replaced=seen)
    return row


@transaction.atomic
def adjudication_withdraw(*, chat: Chat, criterion: Criterion, by: User, seen: int) -> None:
    """
    Withdraw the decision `seen`; the majority counts again. If it is already withdrawn, change nothing.

    Raises DecidedMeanwhileError: another decision is current.
    """
    criteria_lock(criterion_ids=[criterion.pk])
    cell = (chat.pk, criterion.pk)
    current = _in_force([cell]).get(cell)
    if current is None:
        return
    if current.pk != seen:
        raise DecidedMeanwhileError(current)
    _replace({}, [current], timezone.now())
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
    audit(actor=by, verb="adjudication withdrawn", obj=current, **_named(current))


def raters_named(*, chat: Chat, criterion: Criterion, by: User) -> None:
    """Log that a lead asked for the raters' names."""
    audit(actor=by, verb="raters named", obj=chat, chat=chat.external_id, criterion=criterion.key)


def _check(criterion: Criterion, value: bool | None, reason: str) -> None:
    known = criteria_by_key()[criterion.key]
    check_answer(value, known, known.newest)
    if not reason.strip():
        raise FieldProblem("reason", "must not be blank")
    if len(reason) > REASON_LIMIT:
        raise FieldProblem("reason", f"must not be longer than {REASON_LIMIT:,} characters")


def _name_of(user: User) -> str:
    return (user.get_full_name() or user.get_username())[:NAME_LIMIT]


def _named(row: Adjudication) -> dict[str, str]:
    return {"chat": row.chat.external_id, "criterion": row.criterion.key}


def _logged(row: Adjudication) -> dict[str, Any]:
    """Return what the audit log keeps of a decision that a file replaced."""
    decided = {"value": ANSWER_WORDS[row.value], "reason": row.reason, "adjudicated_by": row.by_name}
    return decided | {"created_at": iso(row.created_at)}


# ---------- shared by page and file ----------


def _in_force(cells: Collection[Cell]) -> dict[Cell, Adjudication]:
    """Lock and return the current decisions on these pairs of chat and criterion."""
    current = (
        Adjudication.objects.select_for_update(of=("self",))
        .filter(
            chat_id__in={chat for chat, _ in cells},
            criterion_id__in={criterion for _, criterion in cells},
            replaced_at=None,
        )
        .select_related("chat", "criterion")
    )
    return {
        (row.chat_id, row.criterion_id): row for row in current if (row.chat_id, row.criterion_id) in cells
    }


def _replace(new: Mapping[Cell, Adjudication], old: Collection[Adjudication], now: datetime) -> None:
    """Mark the old rows as replaced at this time; they stay as history."""
    Adjudication.objects.filter(pk__in=[row.pk for row in old]).update(replaced_at=now)
    Adjudication.objects.bulk_create(new.values())


def _same(new: Adjudication, old: Adjudication) -> bool:
    compared = ("value", "reason", "by_name", "carried_from_id")
    return all(getattr(new, name) == getattr(old, name) for name in compared)


# ---------- files ----------


@transaction.atomic
def adjudications_import(*, path: Path, replace_accounts: bool = False) -> ImportResult:
    """
    Add the decisions of a file, replace those that differ, and update the consensus.

    A decision older than the current one changes nothing. One that a lead took in the workbench changes only
    with `replace_accounts`; the audit log keeps both.

    Raises ImportProblem; no data is written then.
    """
    importer = _AdjudicationsImport(path, replace_accounts)
    criteria_lock(criterion_ids=[criterion.id for criterion in importer.criteria.values()])
    lines = read_records(path, lambda fields: adjudication_line_of(fields, importer.ignored))
    for chunk in in_batches(lines, LINES_AT_ONCE):
        importer.store(chunk)
    cells = importer.changed
    consensus_refresh(criterion_ids={cell[1] for cell in cells}, chat_ids={cell[0] for cell in cells})
    older = importer.counts["older"]
    result = ImportResult(
        created=importer.counts["created"],
        unchanged=importer.counts["unchanged"],
        updated=importer.counts["updated"],
        ignored=importer.ignored.counts,
        notes=(f"{older:,} decisions not changed: the workspace has a newer one",) if older else (),
    )
    audit_import(what="adjudications", path=path, result=result)
    return result


class _AdjudicationsImport:
    def __init__(self, path: Path, replace_accounts: bool) -> None:
        self.path, self.replace_accounts = path, replace_accounts
        self.ignored = Ignored()
        self.counts: Counter[str] = Counter()
        self.changed: list[Cell] = []
        self.criteria = criteria_by_key()
        self.lines: dict[Cell, int] = {}  # leads write decisions by hand, so there are few
        self.now = timezone.now()

    def store(self, chunk: Sequence[tuple[int, AdjudicationLine]]) -> None:
        """Create or replace the decisions of some lines."""
        decisions = self._resolve(chunk)
        known = _in_force(decisions.keys())
        changed = {
            cell: row
            for cell, row in decisions.items()
            if cell not in known or self._changes(row, known[cell], self.lines[cell])
        }
        replaced = [known[cell] for cell in changed if cell in known]
        _replace(changed, replaced, self.now)
        self._log(changed, [row for row in replaced if row.by_id is not None])
        self.changed += changed
        self.counts.update(
            created=len(changed) - len(replaced),
            updated=len(replaced),
            unchanged=len(decisions) - len(changed),
        )

    def _changes(self, new: Adjudication, old: Adjudication, line: int) -> bool:
        """Whether the line replaces the decision; raise ImportProblem where that needs a permission."""
        if _same(new, old):
            return False
        if new.created_at < old.created_at:
            self.counts["older"] += 1
            return False
        if old.by_id is not None and not self.replace_accounts:
            message = (
                f"would replace what {shown(old.by_name)} decided in the workbench on "
                f"{old.chat.external_id} · {old.criterion.key}; --replace-account-decisions allows it"
            )
            raise ImportProblem(str(self.path), line, "adjudicated_by", message)
        return True

    def _log(self, new: Mapping[Cell, Adjudication], old: Sequence[Adjudication]) -> None:
        """Log each decision of an account that a line replaced, with both."""
        rows = []
        for before in old:
            cell = (before.chat_id, before.criterion_id)
            line = f"{self.path.name} line {self.lines[cell]}"
            states = {"before": _logged(before), "after": _logged(new[cell])}
            rows.append((before, {**_named(before), "operator": operator_name(), "file": line, **states}))
        audit_all(actor=None, verb="adjudication replaced", rows=rows)

    def _resolve(self, chunk: Sequence[tuple[int, AdjudicationLine]]) -> dict[Cell, Adjudication]:
        chats = chats_by_external_id({line.chat_id for _, line in chunk})
        decisions: dict[Cell, Adjudication] = {}
        for number, line in chunk:
            try:
                chat = chat_named(line.chat_id, chats)
                criterion = criterion_named(line.criterion, self.criteria)
                check_answer(line.value, criterion, criterion.newest)
                cell = (chat.id, criterion.id)
                origin = origin_named(line.carried_from, criterion, self.criteria)
                if cell in self.lines:
                    message = f"same chat and criterion as line {self.lines[cell]}"
                    raise FieldProblem("criterion", message)
            except FieldProblem as problem:
                raise ImportProblem(str(self.path), number, problem.field, problem.message) from None
            self.lines[cell] = number
            decisions[cell] = self._row(cell, line, origin)
        return decisions

    def _row(self, cell: Cell, line: AdjudicationLine, origin: int | None) -> Adjudication:
        return Adjudication(
            chat_id=cell[0],
            criterion_id=cell[1],
            value=line.value,
            reason=line.reason,
            by_name=line.adjudicated_by,
            carried_from_id=origin,
            created_at=line.created_at or self.now,
        )
