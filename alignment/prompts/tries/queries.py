"""What an author's prompt can be tried on, and what their tries came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from alignment.comparison.queries.latest_verdicts import Judged
from alignment.prompts.tries.core.outcome import Change, Tally, change, tally
from alignment.reports.queries.chat_lists import excerpt
from evaluation.models.judges import Judge
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, Verdict
from evaluation.runs.queries.steps import TITLES, prose
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, held_out

LOOKED_AT = (Split.TRAIN, Split.DEV)
# The key of a run's options under which a try says what it tried.
TRIED = "try"
OFFERED = 40
HUMAN = {Consensus.State.TRUE: True, Consensus.State.FALSE: False}


def members_to_try(*, criterion: Criterion, user: User) -> QuerySet[ChatSetMember]:
    """Train and dev of every set of the rubric, as far as the user may see the chats.

    A chat that is holdout in any set is left out, for leads as well: what was looked at while a prompt was
    written cannot test it.
    """
    members = ChatSetMember.objects.filter(chat_set__rubric=criterion.rubric_id, split__in=LOOKED_AT)
    return members.filter(chat__in=chats_shown(user=user)).exclude(chat__in=held_out())


def last_try(*, criterion: Criterion, author: User) -> Run | None:
    """The author's newest try of this criterion's prompt."""
    return tries_of(criterion=criterion, author=author).first()


def tries_of(*, criterion: Criterion, author: User) -> QuerySet[Run]:
    """An author's tries of a criterion's prompt, newest first."""
    runs = Run.objects.filter(purpose=Run.Purpose.TRY, started_by=author)
    runs = runs.filter(**{f"options__{TRIED}__criterion": criterion.key})
    return runs.select_related("judge", "chat_set").order_by("-id")


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A call that is on its way, or answered while its chat is not finished; `text` is its prose."""

    title: str
    state: str
    text: str
    cost_usd: Any
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class TriedChat:
    """One chat of a try: people's answer, the verdict before and after, and what became of it.

    `people` is a state of the consensus, '' without one. Without `after` it has not been judged: `state` is
    the state of its unit, and `steps` are the calls so far.
    """

    chat: Chat
    split: str
    people: str
    before: Verdict | None
    after: Verdict | None
    change: Change
    state: str
    error: str
    steps: tuple[LiveStep, ...]

    @property
    def excerpt(self) -> str:
        """The customer's first words."""
        return excerpt(self.chat.messages)

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.after is not None or self.state == Unit.State.FAILED


@dataclass(frozen=True, slots=True)
class Tried:
    """What a try came to so far, of the chats that the user may see; `hidden` are the others."""

    run: Run
    criterion: Criterion
    chats: tuple[TriedChat, ...]
    tally: Tally
    hidden: int

    @property
    def options(self) -> Mapping[str, Any]:
        """What was tried: criterion, what, n, prompt, before and by_champion."""
        return self.run.options[TRIED]  # type: ignore[no-any-return]  # JSON

    @property
    def ended(self) -> int:
        """Chats that are judged, or could not be."""
        return sum(chat.ended for chat in self.chats)


def tried(*, run: Run, criterion: Criterion, user: User) -> Tried:
    """Every chat of a try in its order; the number of queries does not depend on how many there are."""
    covered = list(run.run_chats.order_by("id").values_list("chat_id", "split"))
    ids = [pk for pk, _ in covered]
    shown = {row.pk: row for row in chats_shown(user=user).filter(pk__in=ids).select_related("topic")}
    people = dict(Consensus.objects.filter(criterion=criterion, chat__in=ids).values_list("chat_id", "state"))
    pinned = {int(chat): pk for chat, pk in run.options[TRIED]["before"].items()}
    old = Verdict.objects.in_bulk(pinned.values())
    new = {row.chat_id: row for row in Verdict.objects.filter(run=run, criterion=criterion)}
    units, live = {row.chat_id: row for row in Unit.objects.filter(run=run)}, _live_steps(run)
    chats = tuple(
        _chat(
            shown[pk],
            split,
            people.get(pk, ""),
            (old.get(pinned.get(pk, 0)), new.get(pk)),
            units[pk],
            live.get(pk, ()),
        )
        for pk, split in covered
        if pk in shown
    )
    return Tried(run, criterion, chats, tally(chat.change for chat in chats), len(covered) - len(chats))


def _chat(
    row: Chat,
    split: str,
    people: str,
    verdicts: tuple[Verdict | None, Verdict | None],
    unit: Unit,
    steps: Sequence[LiveStep],
) -> TriedChat:
    before, after = verdicts
    # A try asks one group of criteria, so a chat has one unit.
    return TriedChat(
        chat=row,
        split=split,
        people=people,
        before=before,
        after=after,
        change=change(
            people=HUMAN.get(Consensus.State(people)) if people else None,
            before=before.value if before else None,
            after=after.value if after else None,
        ),
        state=unit.state,
        error=unit.error,
        steps=() if after else tuple(steps),
    )


def _live_steps(run: Run) -> dict[int, list[LiveStep]]:
    """By chat, what was asked for units in work; an answer that was stored before is not seen here."""
    rows = Attempt.objects.filter(run=run, unit__state=Unit.State.LEASED).select_related("call", "unit")
    calls: dict[int, dict[int, ModelCall]] = {}
    for row in rows.order_by("id"):
        if row.unit is not None:
            calls.setdefault(row.unit.chat_id, {})[row.call_id] = row.call
    return {chat: [_live(call) for call in found.values()] for chat, found in calls.items()}


def _live(call: ModelCall) -> LiveStep:
    return LiveStep(
        title=TITLES.get(call.role, call.role),
        state=ModelCall.State(call.state).label,
        text=call.reply if call.role == "formatter" else prose(call.reply),
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
    )


def asked_otherwise(before: Judge, now: Judge) -> bool:
    """Whether a judge differs in more than its prompts: engine, samples, knowledge, roles."""
    was, is_now = before.config, now.config
    if any(was.get(name) != is_now.get(name) for name in ("engine", "endpoint", "samples")):
        return True
    if was.get("knowledge", {}).get("mode") != is_now.get("knowledge", {}).get("mode"):
        return True
    # A judge of more criteria has roles that the smaller one does not need.
    return any(was.get("roles", {}).get(role) != how for role, how in is_now.get("roles", {}).items())


@dataclass(frozen=True, slots=True)
class Offered:
    """Chats to choose from: those on which people and judge part, newest first, and others of the sets."""

    parted: tuple[Chat, ...]
    others: tuple[Chat, ...]

    @property
    def usual(self) -> Chat | None:
        """The shortest disagreement, else the first of the others."""
        shortest = min(self.parted, key=lambda chat: chat.char_count, default=None)
        return shortest or next(iter(self.others), None)


def chats_offered(*, criterion: Criterion, user: User, standing: Judged) -> Offered:
    """At most so many of either kind; dev comes before train."""
    members = members_to_try(criterion=criterion, user=user)
    parted = standing.parted.filter(chat__in=members.values("chat"))
    newest = list(parted.values_list("chat_id", flat=True)[:OFFERED])
    rows = Chat.objects.select_related("topic").in_bulk(newest)
    first = members.exclude(chat__in=newest).order_by("split", "-chat_set", "position")
    others = {row.chat_id: row.chat for row in first.select_related("chat__topic")[:OFFERED]}
    return Offered(tuple(rows[pk] for pk in newest), tuple(others.values()))
