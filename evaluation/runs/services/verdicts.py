"""Imports verdicts of external judges: one run per judge in the file; the same file gives the same runs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from common.import_watch import import_watch
from common.jsonl import Ignored, in_batches, read_records
from common.problems import FieldProblem, ImportProblem, InputProblem, shown
from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from evaluation.outbox.services import StoredVerdicts, run_publish, stored_verdict, verdicts_publish
from evaluation.runs.core.imported import MODULUS, VerdictLine, verdict_line_of
from evaluation.runs.queries.verdict_counts import verdicts_counted
from labeling.chats.queries import chat_set_named, criteria_of_set
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.people.services.audit import audit_command

LINES_AT_ONCE = 5000
CHATS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run that an import created or found."""

    id: int
    judge: str
    verdicts: int
    created: bool


@dataclass(frozen=True, slots=True)
class VerdictsImported:
    """The runs of a file in the order of their judges; `ignored` as in ImportResult."""

    runs: tuple[ImportedRun, ...]
    ignored: Mapping[str, int]


@dataclass
class _Content:
    """A file's content for one judge."""

    digest: int = 0
    verdicts: int = 0
    criteria: set[str] = field(default_factory=set)


def verdicts_import(*, path: Path, set_name: str, demo: bool = False) -> VerdictsImported:
    """Store the verdicts of a file as finished runs over a set, one per judge.

    Parameters
    ----------
    path : JSON Lines of verdicts; read twice, first to identify the content.
    set_name : the set whose chats the runs cover, those without a verdict too.
    demo : mark new judges as written for the demo.

    Raises
    ------
    ImportProblem, InputProblem : no run is written.
    """
    chat_set = chat_set_named(set_name)
    if chat_set is None:
        raise InputProblem(f"--set: no set {shown(set_name)}")
    ignored = Ignored()
    contents = _contents(path, ignored)
    with transaction.atomic():
        runs = {name: _run(name, content, chat_set, path, demo) for name, content in contents.items()}
        new = {name: run for name, (run, created) in runs.items() if created}
        if new:
            _store(path, chat_set, new)
            counts_by_run = verdicts_counted([run.pk for run in new.values()])
            for run in new.values():
                run.verdict_counts = counts_by_run[run.pk]
                run.save(update_fields=["verdict_counts"])
                days_recount(run.pk)
                run_publish(run)
        verdicts = sum(contents[name].verdicts for name in new)
        ids = {"runs": sorted(run.pk for run, _ in runs.values()), "new_runs": len(new)}
        audit_command(what="verdicts", path=path, obj=chat_set, created=verdicts, **ids)
    return VerdictsImported(
        tuple(
            ImportedRun(run.pk, name, contents[name].verdicts, created)
            for name, (run, created) in runs.items()
        ),
        ignored.counts,
    )


def _contents(path: Path, ignored: Ignored) -> dict[str, _Content]:
    contents: dict[str, _Content] = {}
    for _, line in read_records(path, lambda fields: verdict_line_of(fields, ignored)):
        content = contents.setdefault(line.judge, _Content())
        content.digest = (content.digest + line.digest) % MODULUS
        content.verdicts += 1
        content.criteria.add(line.criterion)
    return contents


def _run(name: str, content: _Content, chat_set: ChatSet, path: Path, demo: bool) -> tuple[Run, bool]:
    """Return the run of this judge with this content on this set, and whether it is new."""
    judge, new_judge = Judge.objects.get_or_create(
        fingerprint=_hash({"schema": 1, "kind": "imported", "name": name}),
        defaults={
            "kind": Judge.Kind.IMPORTED,
            "name": name,
            "config": {"schema": 1, "kind": "imported", "name": name} | ({"demo": True} if demo else {}),
        },
    )
    source = {"set": chat_set.pk, "judge": judge.fingerprint, "content": f"{content.digest:064x}"}
    run, created = Run.objects.get_or_create(
        source_hash=_hash(source | {"verdicts": content.verdicts}),
        defaults={
            "judge": judge,
            "chat_set": chat_set,
            "purpose": Run.Purpose.IMPORT,
            "state": Run.State.DONE,
            "options": {"criteria": sorted(content.criteria), "file": path.name},
            "finished_at": timezone.now(),
        },
    )
    watch = import_watch()
    watch.created([judge] * new_judge)
    watch.created([run] * created)
    return run, created


def _hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _store(path: Path, chat_set: ChatSet, runs: Mapping[str, Run]) -> None:
    members = (
        ChatSetMember.objects.filter(chat_set=chat_set).order_by("position").values_list("chat_id", "split")
    )
    for batch in in_batches(members.iterator(), CHATS_AT_ONCE):
        RunChat.objects.bulk_create(
            RunChat(run=run, chat_id=chat_id, split=split)
            for run in runs.values()
            for chat_id, split in batch
        )
    importer = _VerdictsImport(path, chat_set, runs)
    for chunk in in_batches(read_records(path, verdict_line_of), LINES_AT_ONCE):
        importer.store([(number, line) for number, line in chunk if line.judge in runs])
        import_watch().advance(len(chunk))


class _VerdictsImport:
    def __init__(self, path: Path, chat_set: ChatSet, runs: Mapping[str, Run]) -> None:
        self.path, self.chat_set, self.runs = path, chat_set, runs
        self.criteria = {row.key: (place, row.pk) for place, row in enumerate(criteria_of_set(chat_set))}
        # One bit for each chat (by its position in the set) and criterion with a verdict.
        self.spoken: dict[str, bytearray] = {name: bytearray() for name in runs}
        self.keys = {pk: key for key, (_, pk) in self.criteria.items()}
        self.now: datetime = timezone.now()

    def store(self, chunk: Sequence[tuple[int, VerdictLine]]) -> None:
        """Store the verdicts of some lines."""
        members = self._members({line.chat_id for _, line in chunk})
        rows = []
        for number, line in chunk:
            try:
                rows.append(self._row(number, line, members))
            except FieldProblem as problem:
                refused = ImportProblem(str(self.path), number, problem.field, problem.message)
                import_watch().refuse(refused)
        Verdict.objects.bulk_create(rows)
        verdicts_publish(self._by_chat(rows))

    def _by_chat(self, rows: Sequence[Verdict]) -> list[StoredVerdicts]:
        stored: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for row in rows:
            told = stored_verdict(
                self.keys[row.criterion_id], state=row.state, value=row.value, p_true=row.p_true
            )
            stored.setdefault((row.run_id, row.chat_id), []).append(told)
        return [StoredVerdicts(*place, tuple(verdicts)) for place, verdicts in stored.items()]

    def _members(self, external_ids: set[str]) -> dict[str, tuple[int, int]]:
        members: dict[str, tuple[int, int]] = {}
        for batch in in_batches(external_ids, CHATS_AT_ONCE):
            rows = ChatSetMember.objects.filter(chat_set=self.chat_set, chat__external_id__in=batch)
            for external_id, chat_id, position in rows.values_list(
                "chat__external_id", "chat_id", "position"
            ):
                members[external_id] = (chat_id, position)
        return members

    def _row(self, number: int, line: VerdictLine, members: Mapping[str, tuple[int, int]]) -> Verdict:
        if line.chat_id not in members:
            raise FieldProblem(
                "chat_id", f"no chat {shown(line.chat_id)} in the set {shown(self.chat_set.name)}"
            )
        if line.criterion not in self.criteria:
            rubric = self.chat_set.rubric.name
            raise FieldProblem(
                "criterion", f"no criterion {shown(line.criterion)} in the rubric {shown(rubric)}"
            )
        chat_id, position = members[line.chat_id]
        place, criterion_id = self.criteria[line.criterion]
        self._check_once(number, line, position * len(self.criteria) + place)
        return Verdict(
            run=self.runs[line.judge],
            chat_id=chat_id,
            criterion_id=criterion_id,
            state=line.state,
            value=line.value,
            p_true=line.p_true,
            rationale=line.rationale,
            read_by=Verdict.ReadBy.IMPORT,
            stored_at=self.now,
        )

    def _check_once(self, number: int, line: VerdictLine, cell: int) -> None:
        spoken, (byte, bit) = self.spoken[line.judge], divmod(cell, 8)
        if byte >= len(spoken):
            spoken.extend(bytes(byte + 1 - len(spoken)))
        if spoken[byte] >> bit & 1:
            if import_watch().tolerant:
                raise FieldProblem("judge", "the same chat, criterion and judge are on an earlier line")
            place = (line.judge, line.chat_id, line.criterion)
            lines = read_records(self.path, verdict_line_of)
            first = next(n for n, other in lines if (other.judge, other.chat_id, other.criterion) == place)
            raise FieldProblem("judge", f"the same chat, criterion and judge are already on line {first}")
        spoken[byte] |= 1 << bit
