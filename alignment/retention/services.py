"""Deletion of chats' text after its retention, in every copy; counts, hashes and figures stay."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import compress
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from alignment.archive.worker import archive_path
from alignment.issues.worker.retention import embedded_texts_delete, issue_texts_delete
from alignment.models.archives import WorkspaceArchive
from alignment.models.misalignments import Misalignment, TriageChange
from alignment.models.suggestions import Suggestion
from alignment.retention.queries import calls_about, imports_of, units_at_work
from common.models import Comment
from evaluation.core.hashing import text_hash
from evaluation.models.outbox import Delivery
from evaluation.models.prompts import FewShotExample
from evaluation.models.runs import UNITS_LEFT, ModelCall, Run, TextBlock, Unit, Verdict
from labeling.ingest.core.retention import ChatAge, RetentionPlan, TextCopy, retention_plan
from labeling.ingest.queries import EXEMPT, chats_due, is_exempt
from labeling.ingest.services.chats import import_texts_delete
from labeling.models.chats import Chat, ChatWords
from labeling.models.imports import DataImport
from labeling.models.ingest import IngestSettings
from labeling.models.labels import Adjudication, Label, LabelRevision, RaterNote

CHATS_AT_ONCE = 200
# Once no text is left to delete, the next search may wait.
PAUSE = timedelta(minutes=10)
DELETED = "Deleted."
# Parts of prompts with the text of a chat, or with what a model said about it.
BLOCKS = ("<<chat ", "<<draft ", "<<brief ", "<<text ")


def retention_sweep() -> None:
    """Delete the text of some chats that are due; the next sweep goes on with others."""
    row = IngestSettings.current()
    now = timezone.now()
    if row.retention_days is None or (row.retention_done_at and row.retention_done_at > now - PAUSE):
        return
    if not texts_delete(days=row.retention_days, now=now):
        IngestSettings.objects.update(retention_done_at=now)


@transaction.atomic
def texts_delete(*, days: int, now: datetime, limit: int = CHATS_AT_ONCE) -> int:
    """
    Delete the text of at most `limit` chats that are due; return how many.

    Curated, gold and calibration sets keep theirs. A chat waits while a run judges it. The same call again
    finds the next chats, also after a crash: a chat and its copies lose their text together.
    """
    rows = chats_due(days, now=now).exclude(Exists(units_at_work(OuterRef("pk"))))
    rows = rows.select_for_update(of=("self",)).order_by(Coalesce("last_at", "created_at"), "pk")
    columns = ("pk", "content_hash", "last_at", "created_at")
    due = list(rows.only(*columns)[:limit])
    if not due:
        return 0
    copies = [*calls_about(due), *imports_of(due)]
    plan = retention_plan(chats=_ages(due, copies), copies=copies, days=days, now=now)
    _copies_delete(plan, due, now)
    IngestSettings.objects.update(texts_deleted=F("texts_deleted") + len(due))
    return len(due)


@transaction.atomic
def chat_text_delete(*, chat: Chat, calls: Iterable[int], now: datetime) -> None:
    """
    Delete the text of one chat at once, in every copy, whatever sets it is in.

    Also delete `calls`, and copies that other chats share: a call about a chat that says the same, files.
    """
    shared = [TextCopy("model_call", call, frozenset({chat.pk})) for call in calls]
    copies = (*calls_about([chat]), *imports_of([chat]), *shared)
    _copies_delete(RetentionPlan(frozenset({chat.pk}), copies), [chat], now)


def _copies_delete(plan: RetentionPlan, chats: Sequence[Chat], now: datetime) -> None:
    embedded_texts_delete(chats=plan.chats, instead=DELETED)
    for delete in DELETIONS.values():
        delete(plan)
    _cancel_units(plan.chats)
    _delete_archives(chats)
    # NB: the plan also names chats that lost their text before and share a call with these.
    Chat.objects.filter(pk__in=[chat.pk for chat in chats]).update(
        messages=[], metadata={}, text_deleted_at=now
    )


def _ages(due: Sequence[Chat], copies: Iterable[TextCopy]) -> list[ChatAge]:
    """Return the ages of these chats and of all others that share a copy with them."""
    waiting = {chat.pk for chat in due}
    others = {pk for copy in copies for pk in copy.chats} - waiting
    # NB: others that are due, but still have their text, keep shared copies until their own turn.
    rows = Chat.objects.filter(pk__in=others).exclude(text_deleted_at=None)
    marked = rows.annotate(**{why: is_exempt(why) for why in EXEMPT})
    gone = [
        ChatAge(pk, last_at or created_at, frozenset(compress(EXEMPT, exempt)))
        for pk, last_at, created_at, *exempt in marked.values_list("pk", "last_at", "created_at", *EXEMPT)
    ]
    return [ChatAge(chat.pk, chat.last_at or chat.created_at) for chat in due] + gone


def _cancel_units(chats: Collection[int]) -> None:
    """Fail the units that are left in runs that are not at work: nobody can judge these chats any more."""
    units = Unit.objects.filter(chat__in=chats, state__in=UNITS_LEFT)
    counts: dict[int, int] = {}
    for run in units.values_list("run", flat=True):
        counts[run] = counts.get(run, 0) + 1
    units.update(state=Unit.State.FAILED, error=DELETED, lease=None, finished_at=timezone.now())
    for run, count in counts.items():
        Run.objects.filter(pk=run).update(units_failed=F("units_failed") + count)


def _delete_archives(due: Sequence[Chat]) -> None:
    """Delete the archives of the workspace that hold one of these chats."""
    first = min(chat.created_at for chat in due)
    done = WorkspaceArchive.objects.filter(state=WorkspaceArchive.State.DONE, finished_at__gte=first)
    for archive in done:
        archive_path(archive.pk).unlink(missing_ok=True)
        archive.delete()


# ---------- by kind of copy ----------


def _of(kind: str, plan: RetentionPlan) -> list[int]:
    return [copy.id for copy in plan.copies if copy.kind == kind]


def _delete_calls(plan: RetentionPlan) -> None:
    calls = ModelCall.objects.filter(pk__in=_of("model_call", plan)).only("key", "parts")
    digests = {digest for call in calls for _, row in call.parts for digest in row}
    starts = Q()
    for start in BLOCKS:
        starts |= Q(text__startswith=start)
    TextBlock.objects.filter(starts, pk__in=digests).update(text=DELETED)
    for call in calls:
        # NB: under its old key the same question would find this empty answer and not be asked again.
        ModelCall.objects.filter(pk=call.pk).update(
            key=text_hash(f"deleted {call.pk} {call.key}"), reply="", thinking="", logprobs=None
        )
    for suggestion in Suggestion.objects.exclude(request=None).iterator():
        chats = {one.get("id") for one in suggestion.material.get("chats", []) if isinstance(one, dict)}
        if not plan.chats.isdisjoint(chats):
            Suggestion.objects.filter(pk=suggestion.pk).update(request=None)


def _delete_label_texts(plan: RetentionPlan) -> None:
    labels: QuerySet[Any] = Label.objects.filter(chat__in=plan.chats)
    revisions: QuerySet[Any] = LabelRevision.objects.filter(label__chat__in=plan.chats)
    for rows in (labels, revisions):
        changed: list[Any] = []
        for row in rows.exclude(rationale="", evidence=[]).only("rationale", "evidence"):
            row.rationale = ""
            row.evidence = [
                {name: value for name, value in one.items() if name != "quote"} for one in row.evidence
            ]
            changed.append(row)
        rows.model._default_manager.bulk_update(changed, ["rationale", "evidence"], batch_size=200)


def _delete_disagreements(plan: RetentionPlan) -> None:
    items = Misalignment.objects.filter(chat__in=plan.chats)
    ids = list(items.values_list("pk", flat=True))
    items.exclude(note="").update(note="")
    changes = list(TriageChange.objects.filter(misalignment__in=ids))
    for change in changes:
        for values in (change.was, change.now):
            if values.get("note"):
                values["note"] = DELETED
    TriageChange.objects.bulk_update(changes, ["was", "now"], batch_size=200)
    _delete_comments("disagreement", ids)


def _delete_notes(plan: RetentionPlan) -> None:
    notes = RaterNote.objects.filter(chat__in=plan.chats)
    _delete_comments("note", list(notes.values_list("pk", flat=True)))
    notes.update(text=DELETED)


def _delete_comments(kind: str, ids: Collection[int]) -> None:
    Comment.objects.filter(subject__in=[f"{kind}:{pk}" for pk in ids]).update(text=DELETED)


def _delete_words(plan: RetentionPlan) -> None:
    ChatWords.objects.filter(chat__in=plan.chats).update(words="")


def _delete_rationales(plan: RetentionPlan) -> None:
    Verdict.objects.filter(chat__in=plan.chats).update(rationale="", explanation="")


def _delete_adjudications(plan: RetentionPlan) -> None:
    Adjudication.objects.filter(chat__in=plan.chats).update(reason=DELETED)


def _delete_examples(plan: RetentionPlan) -> None:
    # The judge leaves out an example whose chat has no text.
    FewShotExample.objects.filter(chat__in=plan.chats).update(rationale=DELETED)


def _delete_answers(plan: RetentionPlan) -> None:
    """Empty what receivers of events answered: it may quote the chat. Events themselves hold no text."""
    names = Chat.objects.filter(pk__in=plan.chats).values_list("external_id", flat=True)
    answered = Delivery.objects.exclude(response="").filter(event__payload__chat_id__in=list(names))
    answered.update(response="")


def _delete_issues(plan: RetentionPlan) -> None:
    _delete_comments("issue", issue_texts_delete(chats=plan.chats, instead=DELETED, blocks=BLOCKS))


def _delete_imports(plan: RetentionPlan) -> None:
    import_texts_delete(DataImport.objects.filter(pk__in=_of("import_file", plan)))


DELETIONS: Mapping[str, Callable[[RetentionPlan], None]] = {
    "search_words": _delete_words,
    "model_call": _delete_calls,
    "verdict": _delete_rationales,
    "label": _delete_label_texts,
    "adjudication": _delete_adjudications,
    "rater_note": _delete_notes,
    "example": _delete_examples,
    "disagreement": _delete_disagreements,
    "issue": _delete_issues,
    "import_file": _delete_imports,
    "outbox_event": _delete_answers,
}
# Kinds of copies that go with another one, or that hold no text: a test compares both with `COPIES`.
ELSEWHERE: Mapping[str, str] = {
    "chat": "with its copies, in the same transaction",
    "label_revision": "with its label",
    "export_file": "archives go with the first of their chats; other exports are streamed, never stored",
    "report": "holds ids of chats and figures; pages read excerpts from the chats",
    "batch_file": "is written from the calls each time; the endpoint deletes its own copy",
}
