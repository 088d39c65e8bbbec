"""Deletion of one chat: all its text in every copy. Verdicts, labels and figures stay without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from alignment.models.experiments import ExperimentMetric
from alignment.models.issues import IssueNaming
from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.personal_data.queries.rows import (
    calls_of,
    events_about,
    form_drafts_about,
    has_example,
    imported_rows,
    suggestions_with,
)
from alignment.retention.queries import units_at_work
from alignment.retention.services import DELETED, chat_text_delete
from common.models import FormDraft
from common.overwrite import overwritten
from common.problems import InputProblem
from evaluation.models.prompts import FewShotExample, PromptDraft
from evaluation.models.runs import Attempt, ModelCall, TextBlock, Unit, Verdict
from evaluation.prompts.core.examples import example_block
from evaluation.prompts.queries.examples import example_as_sent
from labeling.models.chats import Chat
from labeling.models.labels import EXPIRED, Assignment, Label
from labeling.models.people import User, Workspace
from labeling.people.services.audit import audit, operator_name
from labeling.people.services.audit_texts import event_texts_replace

# Keys of audit events that hold text of people.
WRITTEN = ("reason", "text", "note", "rationale", "title")


@dataclass(frozen=True, slots=True)
class ChatDeletion:
    """What stays of a deleted chat, as numbers."""

    labels: int
    verdicts: int
    calls: int


def chat_erase(*, chat: Chat, by: User | None) -> ChatDeletion:
    """
    Delete all text of a chat, whatever sets it is in, and what links it to a customer.

    Its id, topic, times, hashes, labels and verdicts stay: reports and certificates that include it verify as
    before, and the same chat sent again is not taken in. `by`: None on the command line.

    Raises InputProblem while a run judges the chat.
    """
    with overwritten():
        row = Chat.objects.select_for_update(of=("self",)).get(pk=chat.pk)
        if (unit := units_at_work(row).first()) is not None:
            raise InputProblem(f"Run {unit.run_id} is judging this chat. Pause or cancel the run first.")
        calls = calls_of(row)
        _delete_examples_in_prompts(row)
        _delete_suggestions(row)
        _delete_drafts(row)
        _delete_records(row, calls)
        chat_text_delete(chat=row, calls=calls, now=timezone.now())
        _delete_links(row)
        left = ChatDeletion(
            labels=Label.objects.filter(chat=row, state=Label.State.SUBMITTED).count(),
            verdicts=Verdict.objects.filter(chat=row).count(),
            calls=len(calls),
        )
        detail = {"chat": row.external_id, "source": row.source, "labels": left.labels}
        audit(actor=by, verb="personal-data deleted", obj=row, **detail, **_operator(by))
        return left


def chat_exported(*, chat: Chat, by: User | None) -> None:
    """Log that somebody exported the data about a chat."""
    detail = {"chat": chat.external_id, "source": chat.source}
    audit(actor=by, verb="personal-data exported", obj=chat, **detail, **_operator(by))


def _operator(by: User | None) -> dict[str, str]:
    return {} if by else {"operator": operator_name()}


def _delete_examples_in_prompts(chat: Chat) -> None:
    """Delete the chat's excerpts from stored prompts about other chats. NB: needs the chat's text."""
    secret = bytes(Workspace.current().fence_secret)
    rows = FewShotExample.objects.filter(chat=chat).select_related("chat", "prompt_version__criterion")
    for row in rows:
        shown = example_block(example_as_sent(row), key=row.prompt_version.criterion.key, fence_secret=secret)
        first, last = shown.split("\n", 1)[0], shown.rsplit("\n", 1)[-1]
        for block in TextBlock.objects.filter(text__contains=first):
            text = block.text.replace(shown, f"{first}\n{DELETED}\n{last}")
            TextBlock.objects.filter(pk=block.pk).update(text=text)


def _delete_suggestions(chat: Chat) -> None:
    rows = Suggestion.objects.filter(pk__in=suggestions_with(chat))
    for call in ModelCall.objects.filter(pk__in=rows.exclude(call=None).values("call")):
        digests = {digest for _, blocks in call.parts for digest in blocks}
        # NB: one block holds all chats of the request.
        TextBlock.objects.filter(pk__in=digests, text__contains="<<").update(text=DELETED)
    for row in rows:
        texts = {name: DELETED for name in ("text", "reasons") if getattr(row, name)}
        chats = [_without_texts(one) if one.get("id") == chat.pk else one for one in row.material["chats"]]
        material = row.material | {"chats": chats}
        rows.filter(pk=row.pk).update(request=None, error="", material=material, **texts)


def _without_texts(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name in ("id", "run")}


def _delete_drafts(chat: Chat) -> None:
    FormDraft.objects.filter(pk__in=form_drafts_about(chat)).delete()
    for draft in PromptDraft._base_manager.exclude(examples=[]):
        if has_example(draft.examples, chat):
            examples = _other_examples(draft.examples, chat)
            PromptDraft._base_manager.filter(pk=draft.pk).update(examples=examples)
    for use in SuggestionUse.objects.exclude(replaced=None):
        examples = (use.replaced or {}).get("examples", [])
        if has_example(examples, chat):
            replaced = {**(use.replaced or {}), "examples": _other_examples(examples, chat)}
            SuggestionUse.objects.filter(pk=use.pk).update(replaced=replaced)


def _other_examples(examples: Sequence[Any], chat: Chat) -> list[Any]:
    return [one for one in examples if not has_example([one], chat)]


def _delete_records(chat: Chat, calls: set[int]) -> None:
    """Delete what records hold beside the chat: errors that quote it, reasons, imports to be undone."""
    Unit.objects.filter(chat=chat).exclude(error="").update(error=DELETED)
    attempts: QuerySet[Attempt] = Attempt.objects.filter(Q(unit__chat=chat) | Q(call__in=calls))
    attempts.exclude(error="").update(error=DELETED)
    ModelCall.objects.filter(pk__in=calls).exclude(error="").update(error=DELETED)
    for naming in IssueNaming.objects.exclude(error=""):
        if chat.pk in naming.chats:
            IssueNaming.objects.filter(pk=naming.pk).update(error=DELETED)
    skipped = Assignment.objects.filter(chat=chat).exclude(skip_reason__in=("", EXPIRED))
    skipped.update(skip_reason=DELETED)
    event_texts_replace(events_about(chat), keys=WRITTEN, instead=DELETED)
    kept = imported_rows(chat)
    # A chat that was deleted counts as changed since its import, which then cannot be undone.
    kept.filter(model=Chat._meta.label_lower).update(after={"text_deleted_at": None})
    kept.exclude(model=Chat._meta.label_lower).update(after=None)
    kept.exclude(before=None).update(before={})


def _delete_links(chat: Chat) -> None:
    """Replace what names the customer by pseudonyms: chats of one customer stay one unit of statistics."""
    unit, cluster = (_pseudonym(name) for name in (chat.unit_id, chat.cluster))
    Chat.objects.filter(pk=chat.pk).update(unit_id=unit, cluster=cluster, redactions=[], near_hash=None)
    for row in ExperimentMetric.objects.filter(chat=chat):
        ExperimentMetric.objects.filter(pk=row.pk).update(unit=_pseudonym(row.unit))


def _pseudonym(name: str) -> str:
    """Return the same mark for the same name; nobody without the workspace's secret finds the name by it."""
    if not name or name.startswith("deleted-"):
        return name
    secret = bytes(Workspace.current().fence_secret).hex()
    return f"deleted-{salted_hmac('personal-data', name, secret=secret, algorithm='sha256').hexdigest()[:20]}"
