"""Chats and verdicts of a set as lines of import files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from alignment.comparison.queries.requested_scope import visible_scope
from alignment.comparison.queries.scope import Scope
from alignment.session_scores.queries import COLUMNS, ScoredRun, listed_members
from common.jsonl import in_batches, iso
from evaluation.models.runs import ANCHORS, FINISHED, Run, RunChat, Verdict
from evaluation.runs.queries.steps import final_rationales
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown
from labeling.transfer.queries.exports import CHATS_AT_ONCE, Line, filled, places_of

VERDICT_COLUMNS = ("chat_id", "criterion", "judge", "value", "p_true", "state", "rationale")
CHAT_COLUMNS = (
    *("id", "topic", "split", "started_at", "experiment", "variant", "unit_id", "cluster", "metadata"),
)
MESSAGE_COLUMNS = (*CHAT_COLUMNS, "n", "role", "content", "created_at")
SCORE_COLUMNS = ("chat_id", "judge", *COLUMNS[1:])


@dataclass(frozen=True, slots=True)
class ExportRun:
    """A run to export, and a name of its judge that is unique in the file."""

    run: Run
    judge: str


def chat_lines(chat_set: ChatSet, user: User | None = None) -> Iterator[Line]:
    """Lines of the set's chats, in its order, with their splits; with a user, those they may see."""
    rows = ChatSetMember.objects.filter(chat_set=chat_set).select_related("chat__topic").order_by("position")
    if user is not None:
        rows = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    for member in rows.iterator(CHATS_AT_ONCE):
        yield _chat_line(member.chat, member.split)


def _chat_line(chat: Chat, split: str) -> Line:
    line: Line = {"id": chat.external_id, "topic": chat.topic.key, "split": split}
    if chat.started_at:
        line["started_at"] = iso(chat.started_at)
    line["messages"] = [
        {name: message[name] for name in ("role", "content", "created_at") if name in message}
        for message in chat.messages
    ]
    names = ("experiment", "variant", "unit_id", "cluster", "metadata")
    return line | filled(**{name: getattr(chat, name) for name in names})


def message_lines(chats: Iterable[Line]) -> Iterator[Line]:
    """Lines of a table, one a message, from lines of chats."""
    for chat in chats:
        about = {name: value for name, value in chat.items() if name != "messages"}
        for number, message in enumerate(chat["messages"], 1):
            yield about | {"n": number, **message}


def members_for(exported: ExportRun, user: User | None) -> QuerySet[RunChat] | None:
    """The rows of a run's chats that a list shows the user; None for all of them, on the command line."""
    if user is None:
        return None
    scope = visible_scope(Scope(exported.run.chat_set, exported.run), user=user)
    return listed_members(scope, user=user)


def runs_to_export(chat_set: ChatSet) -> tuple[list[ExportRun], list[Run]]:
    """The newest finished run of each judge over the set, and the older runs, which are excluded."""
    finished = Run.objects.filter(chat_set=chat_set, state__in=FINISHED)
    finished = finished.exclude(purpose__in=(Run.Purpose.TRY, ANCHORS))
    newest: dict[int, Run] = {}
    older: list[Run] = []
    for run in finished.select_related("judge").order_by("-id"):
        if newest.setdefault(run.judge_id, run) != run:
            older.append(run)
    return export_runs(list(reversed(newest.values()))), older


def export_runs(runs: Sequence[Run]) -> list[ExportRun]:
    """These runs with their judges' names, plus the start of the fingerprint if a name is not unique."""
    names = [run.judge.name for run in runs]
    return [
        ExportRun(run, name if names.count(name) == 1 else f"{name} {run.judge.fingerprint[:8]}")
        for run, name in zip(runs, names, strict=True)
    ]


def verdict_lines(exported: ExportRun, members: QuerySet[RunChat] | None = None) -> Iterator[Line]:
    """Lines of a run's verdicts with rationales, in the order of its chats; of `members` alone if given."""
    chosen = RunChat.objects.filter(run=exported.run) if members is None else members
    rows = chosen.order_by("id").values_list("chat_id", "chat__external_id")
    for batch in in_batches(rows.iterator(CHATS_AT_ONCE), CHATS_AT_ONCE):
        chats = dict(batch)
        places = places_of(chats)
        verdicts = list(
            Verdict.objects.filter(run=exported.run, chat_id__in=chats).select_related("criterion")
        )
        rationales = final_rationales(verdicts)
        verdicts.sort(key=lambda row: (places[row.chat_id], row.criterion.position, row.criterion_id))
        for row in verdicts:
            yield {
                "chat_id": chats[row.chat_id],
                "criterion": row.criterion.key,
                "judge": exported.judge,
                **_verdict_line(row, rationales),
            }


def score_lines(exported: ExportRun, members: QuerySet[RunChat] | None = None) -> Iterator[Line]:
    """Lines of the session scores of a run, in the order of its chats; of `members` alone if given."""
    scope = Scope(exported.run.chat_set, exported.run)
    chosen = RunChat.objects.filter(run=exported.run).order_by("id") if members is None else members
    for line in ScoredRun.of(scope).lines(chosen):
        yield {"chat_id": line["chat_id"], "judge": exported.judge, **line}


def _verdict_line(row: Verdict, rationales: dict[int, str]) -> Line:
    line: Line = {"value": row.value}
    if row.p_true is not None:
        line["p_true"] = row.p_true
    if row.state != Verdict.State.READ:
        line["state"] = row.state
    return line | filled(rationale=row.rationale or rationales.get(row.pk, ""))
