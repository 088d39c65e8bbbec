"""The triage form of one disagreement, the same on the Disagreements page and on the page of its chat."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, QuerySet
from django.urls import reverse

from alignment.chat_detail.queries.page import prompt_number
from alignment.misalignments.queries.misalignment_list import (
    MisalignmentFilter,
    hidden_runs,
    misalignments_listed,
    misalignments_shown,
)
from alignment.models.misalignments import Misalignment, TriageChange
from alignment.reports.queries.knowledge_gaps import knowledge_mode
from evaluation.engines.core.flags import FlagWords, flags_in_words
from evaluation.engines.core.injection_detection import CHAT_FLAGS, chat_flags
from evaluation.models.runs import Run, Verdict
from evaluation.runs.queries.chats import core_chat
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import accounts_with, holdout_chats

# Flags of a verdict that suggest a prompt injection in the chat.
HOSTILE = frozenset((*CHAT_FLAGS, "addresses_evaluation", "canary_leaked"))
CHANGES_SHOWN = 20
# Chats that the editor shows beside the prompt.
MOST_PINNED = 8
CAUSES = tuple((n, value, words) for n, (value, words) in enumerate(Misalignment.Cause.choices, 1))


@dataclass(frozen=True, slots=True)
class TriageForm:
    """What the form needs: the item with its criterion, owner, chat and newest run.

    `people` : those who may own it. `holdout` : whether the chat is holdout, which authors cannot see.
    `suspect` : signs of a prompt injection. `refine_url` : the editor with this chat and others of the same
    cause beside the text. `reads_knowledge` : whether the judge of the newest run had knowledge.
    """

    item: Misalignment
    people: Sequence[User]
    holdout: bool
    suspect: tuple[FlagWords, ...]
    refine_url: str
    reads_knowledge: bool
    history: QuerySet[TriageChange]
    causes: tuple[tuple[int, str, str], ...] = CAUSES

    @property
    def thread(self) -> str:
        """The subject of its comments."""
        return f"disagreement:{self.item.pk}"


@dataclass(frozen=True, slots=True)
class TriageCounts:
    """Disagreements of a run on one criterion by cause, of any state; those without a cause are the rest."""

    total: int
    causes: tuple[tuple[str, int], ...]

    @property
    def triaged(self) -> int:
        """Number of items with a cause."""
        return sum(n for _, n in self.causes)


def hostile_flags(item: Misalignment, verdict: Verdict | None) -> tuple[FlagWords, ...]:
    """Signs of a prompt injection: flags of the verdict, and flags of the chat's own messages."""
    flags = [flag for flag in (verdict.flags if verdict else ()) if flag in HOSTILE]
    return flags_in_words([*flags, *chat_flags(core_chat(item.chat))])


def triage_form(item: Misalignment, verdict: Verdict | None, *, user: User | AnonymousUser) -> TriageForm:
    """Return the form of an item; five queries. `verdict` : that of the item's newest run."""
    holdout = holdout_chats().filter(chat=item.chat).exists()
    people = list(accounts_with("see_holdout" if holdout else "edit_prompts"))
    if item.owner is not None and item.owner not in people:
        people.append(item.owner)
    return TriageForm(
        item=item,
        people=people,
        holdout=holdout,
        suspect=hostile_flags(item, verdict),
        refine_url=refine_url(item, user=user),
        reads_knowledge=bool(knowledge_mode(item.newest_run)),
        history=item.history[:CHANGES_SHOWN],
    )


def refine_url(item: Misalignment, *, user: User | AnonymousUser) -> str:
    """Return the editor with this chat and others whose cause is the judge pinned; two queries."""
    same = misalignments_shown(user=user).filter(criterion=item.criterion, cause=Misalignment.Cause.JUDGE)
    same = same.exclude(state=Misalignment.State.CLOSED).exclude(chat=item.chat)
    others = same.order_by("-newest_run_id", "pk").values_list("chat_id", flat=True)
    return pinned_url(item.criterion, [item.chat_id, *others[: MOST_PINNED - 1]], run=item.newest_run)


def pinned_url(criterion: Criterion, chats: Sequence[int], *, run: Run) -> str:
    """Return the editor with these chats pinned, from the version with which the run judged them."""
    number = prompt_number(run, criterion)
    query = {"pin": ",".join(str(pk) for pk in chats)} | ({"base": str(number)} if number else {})
    return f"{reverse('alignment:prompt_edit', args=[criterion.key])}?{urlencode(query, safe=',')}"


def item_of(chat: Chat, criterion_id: int, *, user: User | AnonymousUser) -> Misalignment | None:
    """Return the disagreement on a chat and criterion, if there is one that the user may open."""
    related = ("chat__topic", "criterion", "owner", "newest_run__judge", "closed_by_version")
    rows = misalignments_shown(user=user).select_related(*related)
    return rows.filter(chat=chat, criterion=criterion_id).first()


def newest_verdict(item: Misalignment) -> Verdict | None:
    """Return the verdict of the item's newest run."""
    place = {"chat": item.chat_id, "criterion": item.criterion_id}
    return Verdict.objects.filter(run=item.newest_run_id, **place).first()


def triage_counts(run: Run, key: str, *, user: User) -> TriageCounts:
    """Count the disagreements that were seen in a run on one criterion, by cause."""
    shown = misalignments_listed(user=user, without=hidden_runs(user=user))
    rows = MisalignmentFilter(criterion=key, run=run.pk).where(shown)
    counts = dict(rows.order_by().values_list("cause").annotate(n=Count("pk")))
    causes = [(str(words), counts.get(value, 0)) for _, value, words in CAUSES]
    return TriageCounts(sum(counts.values()), tuple((words, n) for words, n in causes if n))
