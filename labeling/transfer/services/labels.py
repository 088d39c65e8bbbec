"""Import of labels: streamed, all or nothing; a changed answer becomes a revision."""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from common.import_watch import import_watch
from common.jsonl import Ignored, ImportResult, in_batches, iso, read_records
from common.problems import FieldProblem, ImportProblem, shown
from labeling.chats.queries import ChatRef, chats_by_external_id
from labeling.consensus.services.consensus import consensus_refresh
from labeling.consensus.services.label_copies import history_add
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label
from labeling.models.people import Rater
from labeling.people.services.audit import acting_user, audit_all, audit_import, operator_name
from labeling.rating.core.answers import ANSWER_WORDS, LabelLine, label_line_of
from labeling.rating.core.evidence import EvidenceError, evidence_of
from labeling.rating.services.references import (
    Raters,
    VersionRef,
    chat_named,
    check_answer,
    contents_of,
    criteria_by_key,
    criterion_named,
    origin_named,
)

LINES_AT_ONCE = 5000
ROWS_AT_ONCE = 1000
FEW_RATERS = 100  # with fewer raters than this, filtering by rater is faster
_ANSWER = (
    "value",
    "rationale",
    "evidence",
    "version_id",
    "state",
    "post_reveal",
    "revision",
    "source",
    "carried_from_id",
    "given_at",
    "active_ms",
)

Cell = tuple[int, int, int]  # chat, criterion, rater


@dataclass(frozen=True, slots=True)
class _Answer:
    """A line with resolved names; `version` and `active_ms` are None where absent."""

    line: int
    names: tuple[str, str, str]
    cell: Cell
    value: bool | None
    rationale: str
    evidence: list[dict[str, Any]]
    version: VersionRef | None
    newest: VersionRef
    post_reveal: bool
    given_at: datetime
    active_ms: int | None
    carried_from: int | None
    # The name of the account whose label it is, "" for a rater without an account.
    account: str
    # Whether its rater has seen the judge's view: an earlier label does not change then.
    after_reveal: bool = False

    def is_of(self, label: Label) -> bool:
        """Whether the label has the same answer."""
        return (
            label.state == Label.State.SUBMITTED
            and self.value == label.value
            and self.rationale == label.rationale
            and self.evidence == label.evidence
            and self.post_reveal == label.post_reveal
            and self.carried_from == label.carried_from_id
            and (self.version is None or self.version.id == label.version_id)
        )


class LabelSource(Protocol):
    """A source of labels; it is read a second time only to report an error."""

    path: Path
    unit: str  # numbered unit: "line" or "record"
    ignored: Ignored

    def lines(self) -> Iterator[tuple[int, LabelLine]]:
        """Yield numbers and labels; several labels may share a number."""

    def problem(self, number: int, field: str, message: str) -> ImportProblem:
        """Return the error at a number."""

    def notes(self) -> tuple[str, ...]:
        """Return notes after reading."""


class LabelsFile:
    """JSON Lines of labels."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path, self.ignored = path, Ignored()

    def lines(self) -> Iterator[tuple[int, LabelLine]]:
        """Yield line numbers and labels."""
        return read_records(self.path, lambda fields: label_line_of(fields, self.ignored))

    def problem(self, number: int, field: str, message: str) -> ImportProblem:
        """Return the error on a line."""
        return ImportProblem(str(self.path), number, field, message)

    def notes(self) -> tuple[str, ...]:
        """Return no notes."""
        return ()


def labels_import(
    *,
    path: Path,
    source: Label.Source = Label.Source.IMPORT,
    rater_kind: Rater.Kind = Rater.Kind.PERSON,
    replace_accounts: bool = False,
) -> ImportResult:
    """
    Add the labels of a file, revise those with a different answer, and update the consensus.

    Parameters
    ----------
    path : JSON Lines of labels.
    source : source of the labels.
    rater_kind : kind of new raters where the line has none.
    replace_accounts : whether a line may change what an account answered; the audit log keeps both answers.

    An answer older than the stored one changes nothing. Raises ImportProblem; no data is written then.
    """
    return labels_take(
        file=LabelsFile(path), source=source, rater_kind=rater_kind, replace_accounts=replace_accounts
    )


@transaction.atomic
def labels_take(
    *,
    file: LabelSource,
    source: Label.Source = Label.Source.IMPORT,
    rater_kind: Rater.Kind = Rater.Kind.PERSON,
    replace_accounts: bool = False,
) -> ImportResult:
    """
    Add the labels of a source, as `labels_import` does.

    Raises ImportProblem; no data is written then.
    """
    importer = _LabelsImport(file, source, rater_kind, replace_accounts)
    for chunk in in_batches(file.lines(), LINES_AT_ONCE):
        importer.store(chunk)
        import_watch().advance(len(chunk))
    importer.check_accounts()
    consensus_refresh(criterion_ids=importer.criterion_ids, chat_ids=importer.chat_ids)
    result = ImportResult(
        created=importer.counts["created"],
        unchanged=importer.counts["unchanged"],
        updated=importer.counts["updated"],
        ignored=file.ignored.counts,
        notes=file.notes() + importer.notes(),
    )
    audit_import(what="labels", path=file.path, result=result, obj=None, **importer.noteworthy())
    return result


class _LabelsImport:
    def __init__(
        self, file: LabelSource, source: Label.Source, rater_kind: Rater.Kind, replace_accounts: bool
    ) -> None:
        self.file, self.source, self.replace_accounts = file, source, replace_accounts
        # The first line that would change an account's label; `counts` has the number of such lines.
        self.refused: _Answer | None = None
        self.counts: Counter[str] = Counter()
        self.chat_ids: set[int] = set()
        self.criterion_ids: set[int] = set()
        self.criteria = criteria_by_key()
        self.raters = Raters(rater_kind)
        self.now = timezone.now()
        self.id = uuid.uuid4()  # client_id of all new revisions
        self.before = Label.objects.aggregate(last=Max("pk"))["last"] or 0
        # One bit per existing label: whether a line of this file names it.
        self.spoken = bytearray(self.before // 8 + 1)

    def store(self, chunk: Sequence[tuple[int, LabelLine]]) -> None:
        """Create or revise the labels of some lines."""
        watch = import_watch()
        answers = self._marked(self._resolve(chunk))
        known = self._known(answers)
        new: list[Label] = []
        revised: dict[int, Label] = {}
        replaced: list[tuple[Label, dict[str, Any]]] = []
        for answer in answers:
            label = known.get(answer.cell)
            if label is None:
                new.append(self._label(answer, revision=1, active_ms=0))
                continue
            if not self._is_first(answer, label):
                continue
            if not self._changes(answer, label):
                self.counts["unchanged"] += 1
                continue
            revision = self._label(answer, revision=label.revision + 1, active_ms=label.active_ms)
            if answer.account:
                replaced.append((label, self._replacement(answer, label, revision)))
            revised[label.pk] = revision
            watch.updated(label, _fields_of(label), _fields_of(revision))
        self._create(new)
        self._revise(revised)
        audit_all(actor=acting_user(), verb="label replaced", rows=replaced)
        self.counts.update(created=len(new), updated=len(revised), replaced=len(replaced))

    def _changes(self, answer: _Answer, label: Label) -> bool:
        """Whether the answer revises the label; count why not, and the lines that need a permission."""
        if answer.is_of(label):
            return False
        if answer.after_reveal and label.blind:
            self.counts["frozen"] += not replace(answer, post_reveal=False).is_of(label)
            return False
        if answer.given_at < label.given_at:
            self.counts["older"] += 1
            return False
        if answer.account and not self.replace_accounts:
            self.counts["refused"] += 1
            self.refused = self.refused or answer
            return False
        return True

    def check_accounts(self) -> None:
        """Raise ImportProblem where lines would change what an account answered."""
        if self.refused is None:
            return
        others = self.counts["refused"] - 1
        more = (
            f" ({others:,} more {'line' if others == 1 else 'lines'} would change one, too)" if others else ""
        )
        cell = " · ".join(self.refused.names[:2])
        message = (
            f"would change what the account {shown(self.refused.account)} answered on {cell}{more}; "
            "--replace-account-labels allows it"
        )
        import_watch().refuse(self.file.problem(self.refused.line, "rater", message))

    def _resolve(self, chunk: Sequence[tuple[int, LabelLine]]) -> list[_Answer]:
        chats = chats_by_external_id({line.chat_id for _, line in chunk})
        kinds: dict[str, str] = {}
        for _, line in chunk:
            kinds.setdefault(line.rater, line.kind)
        self.raters.load(kinds)
        pointed = {line.chat_id for _, line in chunk if line.turns or line.evidence}
        contents = contents_of([chats[key].id for key in pointed if key in chats])
        answers: dict[Cell, _Answer] = {}
        watch = import_watch()
        for number, line in chunk:
            try:
                answer = self._answer(number, line, chats, contents)
            except FieldProblem as problem:
                watch.refuse(self.file.problem(number, problem.field, problem.message))
                continue
            if answer.cell in answers:
                watch.refuse(self._twice(answer))
                continue
            answers[answer.cell] = answer
        return list(answers.values())

    def _answer(
        self,
        number: int,
        line: LabelLine,
        chats: Mapping[str, ChatRef],
        contents: Mapping[int, Mapping[int, str]],
    ) -> _Answer:
        chat = chat_named(line.chat_id, chats)
        criterion = criterion_named(line.criterion, self.criteria)
        version = criterion.version(line.version)
        check_answer(line.value, criterion, version)
        pointed = bool(line.turns or line.evidence)
        return _Answer(
            line=number,
            names=line.cell,
            cell=(chat.id, criterion.id, self.raters.named(line.rater, line.kind)),
            value=line.value,
            rationale=line.rationale,
            evidence=_evidence(line, chat, contents[chat.id]) if pointed else [],
            version=None if line.version is None else version,
            newest=criterion.newest,
            post_reveal=line.post_reveal,
            given_at=line.created_at or self.now,
            active_ms=line.active_ms,
            carried_from=origin_named(line.carried_from, criterion, self.criteria),
            account=self.raters.account(line.rater),
        )

    def notes(self) -> tuple[str, ...]:
        """Return notes after storing."""
        reasons = {
            "frozen": "not changed: their raters have since seen the judge’s view of the chat",
            "older": "not changed: the workspace has a newer answer",
            "replaced": "of accounts replaced; the audit log has both answers of each",
        }
        return tuple(
            f"{self.counts[key]:,} labels {text}" for key, text in reasons.items() if self.counts[key]
        )

    def noteworthy(self) -> dict[str, int]:
        """Return the counts for the audit log beyond those of every import."""
        return {name: self.counts[name] for name in ("older", "replaced") if self.counts[name]}

    def _marked(self, answers: Sequence[_Answer]) -> list[_Answer]:
        """Mark answers of raters who have seen the judge's view of the chat as post-reveal."""
        seen: set[tuple[int, int]] = set()
        for batch in in_batches(sorted({answer.cell[0] for answer in answers}), ROWS_AT_ONCE):
            revealed = Assignment.objects.filter(chat_id__in=batch, revealed_at__isnull=False)
            seen.update(revealed.values_list("chat_id", "rater_id"))
        return [
            replace(answer, post_reveal=True, after_reveal=True)
            if (answer.cell[0], answer.cell[2]) in seen
            else answer
            for answer in answers
        ]

    def _known(self, answers: Sequence[_Answer]) -> dict[Cell, Label]:
        """Return the existing labels on these cells, those from earlier lines included."""
        cells = {answer.cell for answer in answers}
        ids: list[int] = []
        for batch in in_batches(sorted({chat for chat, _, _ in cells}), ROWS_AT_ONCE):
            labels = Label.objects.filter(chat_id__in=batch, criterion_id__in={cell[1] for cell in cells})
            raters = {cell[2] for cell in cells}
            if len(raters) <= FEW_RATERS:
                labels = labels.filter(rater_id__in=raters)
            # In a shuffled file most chats of a chunk have labels by other raters: load only the keys first.
            rows = labels.values_list("pk", "chat_id", "criterion_id", "rater_id").order_by()
            ids += [pk for pk, *cell in rows.iterator() if tuple(cell) in cells]
        return {
            (label.chat_id, label.criterion_id, label.rater_id): label
            for batch in in_batches(ids, ROWS_AT_ONCE)
            for label in Label.objects.select_for_update(of=("self",)).filter(pk__in=batch)
        }

    def _is_first(self, answer: _Answer, label: Label) -> bool:
        """Refuse a second line on a label that an earlier chunk created or named."""
        byte, bit = divmod(label.pk, 8)
        if label.pk > self.before or self.spoken[byte] >> bit & 1:
            import_watch().refuse(self._twice(answer))
            return False
        self.spoken[byte] |= 1 << bit
        return True

    def _twice(self, answer: _Answer) -> ImportProblem:
        """Return the error with the number of the first of the two."""
        if import_watch().tolerant:
            message = f"same chat, criterion and rater as an earlier {self.file.unit}"
            return self.file.problem(answer.line, "rater", message)
        first = next(number for number, line in self.file.lines() if line.cell == answer.names)
        message = f"same chat, criterion and rater as {self.file.unit} {first}"
        return self.file.problem(answer.line, "rater", message)

    def _label(self, answer: _Answer, *, revision: int, active_ms: int) -> Label:
        chat_id, criterion_id, rater_id = answer.cell
        return Label(
            chat_id=chat_id,
            criterion_id=criterion_id,
            rater_id=rater_id,
            version_id=(answer.version or answer.newest).id,
            value=answer.value,
            rationale=answer.rationale,
            evidence=answer.evidence,
            state=Label.State.SUBMITTED,
            post_reveal=answer.post_reveal,
            revision=revision,
            source=self.source if answer.carried_from is None else Label.Source.CARRIED,
            carried_from_id=answer.carried_from,
            given_at=answer.given_at,
            active_ms=active_ms if answer.active_ms is None else answer.active_ms,
        )

    def _replacement(self, answer: _Answer, before: Label, after: Label) -> dict[str, Any]:
        """Return the log's detail on an account's label that changes."""
        return {
            "chat": answer.names[0],
            "criterion": answer.names[1],
            "account": answer.account,
            "operator": operator_name(),
            "file": f"{self.file.path.name} {self.file.unit} {answer.line}",
            "before": _logged(before),
            "after": _logged(after),
        }

    def _create(self, new: Sequence[Label]) -> None:
        Label.objects.bulk_create(new)
        Chat.objects.sampled({label.chat_id for label in new})
        import_watch().created(new, ("revision",))
        self._record(new, [label.pk for label in new])

    def _revise(self, revised: Mapping[int, Label]) -> None:
        Label.objects.bulk_create(
            revised.values(),
            update_conflicts=True,
            unique_fields=["chat", "criterion", "rater"],
            update_fields=_ANSWER,
        )
        self._record(list(revised.values()), list(revised))

    def _record(self, labels: Sequence[Label], pks: Sequence[int]) -> None:
        history_add(label_ids=pks, client_id=self.id)
        self.chat_ids.update(label.chat_id for label in labels)
        self.criterion_ids.update(label.criterion_id for label in labels)


def _fields_of(label: Label) -> dict[str, Any]:
    return {name: getattr(label, name) for name in _ANSWER}


def _logged(label: Label) -> dict[str, Any]:
    """Return what the audit log keeps of an answer, without empty fields."""
    answer = {
        "value": ANSWER_WORDS[label.value],
        "rationale": label.rationale,
        "evidence": label.evidence,
        "state": label.state,
        "given_at": iso(label.given_at),
    }
    return {name: value for name, value in answer.items() if value}


def _evidence(line: LabelLine, chat: ChatRef, contents: Mapping[int, str]) -> list[dict[str, Any]]:
    for n, turn in enumerate(line.turns):
        if turn > chat.message_count:
            raise FieldProblem(f"turns[{n}]", f"the chat has {chat.message_count} messages, no number {turn}")
    try:
        return evidence_of(turns=line.turns, parts=line.evidence, contents=contents)
    except EvidenceError as error:
        raise FieldProblem("evidence", str(error)) from None
