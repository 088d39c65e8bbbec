"""Suggested revisions of a prompt as the editor's panel and the API show them."""

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
    """A chat that the model was shown, under its number in the prompt."""

    number: int
    title: str
    topic: str
    people: bool
    judge: bool
    url: str


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """One suggestion in full, against the text that the user's draft would have without it.

    `raw` is the answer that could not be read. `is_draft`: the user's draft says just this. `replaces`: the
    draft holds work of the user's own. `before` is what the user's last use took the place of, if anything.
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
    """The newest suggestions whose chats are all shown to the user, with their uses; four queries."""
    every = Suggestion.objects.only("material")
    open_to = _open_to(user, list(every.filter(criterion=criterion) if criterion else every))
    uses = SuggestionUse.objects.select_related("by")
    rows = Suggestion.objects.select_related("by", "base", "criterion", "dismissed_by", "call")
    newest = rows.filter(pk__in=[row.pk for row in open_to[:LISTED]])
    return list(newest.prefetch_related(Prefetch("uses", uses)))


def suggestion_shown(*, suggestion_id: int, user: User) -> Suggestion | None:
    """One suggestion; None where there is none, or it is about a chat that is not shown to the user."""
    rows = Suggestion.objects.select_related("by", "base", "criterion", "dismissed_by", "call")
    found = _open_to(user, list(rows.filter(pk=suggestion_id)))
    return found[0] if found else None


def _open_to(user: User, rows: Sequence[Suggestion]) -> list[Suggestion]:
    """Model text may tell of a chat: it is for those who may read labels and verdicts on all of them."""
    wanted = {pk for row in rows for pk in row.told_chat_ids}
    shown = set(chats_shown(user=user).filter(pk__in=wanted).values_list("pk", flat=True))
    return [row for row in rows if shown.issuperset(row.told_chat_ids)]


def suggestion_in_full(row: Suggestion, *, user: User) -> ShownSuggestion:
    """Everything the panel says of one suggestion; the number of queries is fixed."""
    chats = Chat.objects.select_related("topic").in_bulk(row.chat_ids)
    listed = tuple(
        _chat(n, told, chats[told["id"]], row.criterion.key)
        for n, told in enumerate(row.material["chats"], start=1)
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
    """The last time that this user made the suggestion their draft."""
    return SuggestionUse.objects.filter(suggestion=suggestion, by=by).first()


def takes_back(use: SuggestionUse, draft: PromptDraft | None) -> bool:
    """Whether the draft is still as this use made it."""
    return use.undone_at is None and draft is not None and draft.revision == use.revision


def _chat(number: int, told: Mapping[str, Any], chat: Chat, key: str) -> ShownChat:
    url = reverse("alignment:chat", args=[told["run"], chat.pk], query={"criterion": key})
    return ShownChat(number, chat.title, chat.topic.name, told["people"], told["judge"], url)


def _findings(row: Suggestion, chats: Sequence[Chat]) -> tuple[Finding, ...]:
    """What the lint says of the text, and what of the chats' words it repeats."""
    linted = prompt_findings(criterion=row.criterion, text=row.text)
    copied = copied_findings(row.text, before=row.base_text, chats=[core_chat(chat) for chat in chats])
    return (*linted, *copied)
