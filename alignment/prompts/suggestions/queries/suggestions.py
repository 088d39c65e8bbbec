"""Suggested revisions of a prompt for the editor's panel and the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch
from django.urls import reverse

from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.prompts.suggestions.core import copied_findings
from evaluation.models.prompts import PromptDraft
from evaluation.prompts.core.changes import SectionChange, section_changes
from evaluation.prompts.core.lint import Finding
from evaluation.prompts.queries.criteria import prompt_findings
from evaluation.prompts.queries.drafts import draft_of
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

LISTED = 20


@dataclass(frozen=True, slots=True)
class ShownChat:
    """A chat in the request, with its number there."""

    number: int
    title: str
    topic: str
    consensus: bool
    judge: bool
    url: str


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """One suggestion with its changes to the user's draft.

    `raw`: the answer that could not be read. `is_draft`: the user's draft equals the suggestion. `replaces`:
    the draft holds changes of the user's own. `before`: the draft that the user's last use replaced.
    """

    row: Suggestion
    chats: tuple[ShownChat, ...]
    links: Mapping[int, str]
    changes: tuple[SectionChange, ...]
    findings: tuple[Finding, ...]
    raw: str
    is_draft: bool
    replaces: bool
    before: str
    can_take_back: bool


def suggestions_shown(*, user: User, criterion: Criterion | None = None) -> list[Suggestion]:
    """Return the newest suggestions, with their uses, if the user can see all their chats; four queries."""
    every = Suggestion.objects.only("material")
    open_to = _open_to(user, list(every.filter(criterion=criterion) if criterion else every))
    uses = SuggestionUse.objects.select_related("by")
    rows = Suggestion.objects.select_related("by", "base", "criterion", "dismissed_by", "call")
    newest = rows.filter(pk__in=[row.pk for row in open_to[:LISTED]])
    return list(newest.prefetch_related(Prefetch("uses", uses)))


def suggestion_shown(*, suggestion_id: int, user: User) -> Suggestion | None:
    """Return one suggestion; None if there is none or the user cannot see one of its chats."""
    rows = Suggestion.objects.select_related("by", "base", "criterion", "dismissed_by", "call")
    visible = _open_to(user, list(rows.filter(pk=suggestion_id)))
    return visible[0] if visible else None


def _open_to(user: User, rows: Sequence[Suggestion]) -> list[Suggestion]:
    """Return the rows whose chats the user can all see: a model's text may quote any of them."""
    chat_ids = {pk for row in rows for pk in row.told_chat_ids}
    shown = set(chats_shown(user=user).filter(pk__in=chat_ids).values_list("pk", flat=True))
    return [row for row in rows if shown.issuperset(row.told_chat_ids)]


def suggestion_in_full(row: Suggestion, *, user: User) -> ShownSuggestion:
    """Return all that the panel shows of one suggestion; constant number of queries."""
    chats = Chat.objects.select_related("topic").in_bulk(row.chat_ids)
    listed = tuple(
        _chat(n, entry, chats[entry["id"]], row.criterion.key)
        for n, entry in enumerate(row.material["chats"], start=1)
    )
    draft = draft_of(criterion=row.criterion, author=user)
    use = newest_use(suggestion=row, by=user)
    done = row.state == Suggestion.State.DONE
    own = draft is not None and draft.text not in (draft.base.text, row.text)
    return ShownSuggestion(
        row=row,
        chats=listed,
        links={chat.number: chat.url for chat in listed},
        changes=section_changes(draft.text if draft else row.base.text, row.text) if done else (),
        findings=_findings(row, [chats[pk] for pk in row.chat_ids]) if done else (),
        raw=row.call.reply if row.call and not done else "",
        is_draft=draft is not None and draft.text == row.text,
        replaces=own,
        before=str((use.replaced or {}).get("text", "")) if use and not use.undone_at else "",
        can_take_back=use is not None and takes_back(use, draft),
    )


def newest_use(*, suggestion: Suggestion, by: User) -> SuggestionUse | None:
    """Return this user's last use of the suggestion."""
    return SuggestionUse.objects.filter(suggestion=suggestion, by=by).first()


def takes_back(use: SuggestionUse, draft: PromptDraft | None) -> bool:
    """Return whether the draft is still the one that this use made."""
    return use.undone_at is None and draft is not None and draft.revision == use.revision


def _chat(number: int, entry: Mapping[str, Any], chat: Chat, key: str) -> ShownChat:
    url = reverse("alignment:chat", args=[entry["run"], chat.pk], query={"criterion": key})
    return ShownChat(number, chat.title, chat.topic.name, entry["people"], entry["judge"], url)


def _findings(row: Suggestion, chats: Sequence[Chat]) -> tuple[Finding, ...]:
    """Return the lint findings, and passages copied from the chats."""
    linted = prompt_findings(criterion=row.criterion, text=row.text)
    copied = copied_findings(row.text, before=row.base_text, chats=[core_chat(chat) for chat in chats])
    return (*linted, *copied)
