"""Chats that a prompt can be tried on, and the results of a try."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from alignment.comparison.queries.latest_verdicts import LatestVerdicts
from alignment.prompts.tries.core import Change, Tally, change, tally
from alignment.reports.queries.chat_lists import excerpt
from evaluation.models.judges import Judge
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, Verdict
from evaluation.runs.queries.steps import TITLES, prose
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, holdout_chats

SPLITS = (Split.TRAIN, Split.DEV)
# The key in a run's options that holds what a try tried.
TRY_OPTIONS = "try"
NEWEST = 40  # disagreements among which the shortest is the usual chat
HUMAN = {Consensus.State.TRUE: True, Consensus.State.FALSE: False}


def members_to_try(*, criterion: Criterion, user: User) -> QuerySet[ChatSetMember]:
    """Return train and dev chats of all sets of the rubric that the user can see.

    Chats that are holdout in any set are excluded for leads, too: data used while writing cannot evaluate.
    """
    members = ChatSetMember.objects.filter(chat_set__rubric=criterion.rubric_id, split__in=SPLITS)
    return members.filter(chat__in=chats_shown(user=user)).exclude(chat__in=holdout_chats())


def tries_of(*, criterion: Criterion, author: User) -> QuerySet[Run]:
    """Return an author's tries of a criterion's prompt, newest first."""
    runs = Run.objects.filter(purpose=Run.Purpose.TRY, started_by=author)
    runs = runs.filter(**{f"options__{TRY_OPTIONS}__criterion": criterion.key})
    return runs.select_related("judge", "chat_set").order_by("-id")


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A call of an unfinished chat, in flight or answered; `text` is its prose."""

    title: str
    state: str
    text: str
    cost_usd: Any
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class TryChat:
    """One chat of a try: the consensus, the verdicts before and after, and the change.

    `consensus` is its state, '' without one. Without `after` the chat is not judged yet: `state` is the state
    of its unit and `steps` are its calls until now.
    """

    chat: Chat
    split: str
    consensus: str
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
        """Whether the chat is finished."""
        return self.after is not None or self.state == Unit.State.FAILED


@dataclass(frozen=True, slots=True)
class TryResult:
    """The current results of a try, on the chats that the user can see; `hidden` counts the others."""

    run: Run
    criterion: Criterion
    chats: tuple[TryChat, ...]
    tally: Tally
    hidden: int

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the try: criterion, what, n, prompt, before and by_champion."""
        return self.run.options[TRY_OPTIONS]  # type: ignore[no-any-return]  # JSON

    @property
    def ended(self) -> int:
        """The number of finished chats."""
        return sum(chat.ended for chat in self.chats)


def try_result(*, run: Run, criterion: Criterion, user: User) -> TryResult:
    """Return every chat of a try in its order; constant number of queries."""
    splits = list(run.run_chats.order_by("id").values_list("chat_id", "split"))
    ids = [pk for pk, _ in splits]
    shown = {row.pk: row for row in chats_shown(user=user).filter(pk__in=ids).select_related("topic")}
    consensus = dict(
        Consensus.objects.filter(criterion=criterion, chat__in=ids).values_list("chat_id", "state")
    )
    pinned = {int(chat): pk for chat, pk in run.options[TRY_OPTIONS]["before"].items()}
    old = Verdict.objects.in_bulk(pinned.values())
    new = {row.chat_id: row for row in Verdict.objects.filter(run=run, criterion=criterion)}
    units, live = {row.chat_id: row for row in Unit.objects.filter(run=run)}, live_steps([run.pk])
    chats = tuple(
        _chat(
            shown[pk],
            split,
            consensus.get(pk, ""),
            (old.get(pinned.get(pk, 0)), new.get(pk)),
            units[pk],
            live.get((run.pk, pk), ()),
        )
        for pk, split in splits
        if pk in shown
    )
    return TryResult(run, criterion, chats, tally(chat.change for chat in chats), len(splits) - len(chats))


def _chat(
    row: Chat,
    split: str,
    consensus: str,
    verdicts: tuple[Verdict | None, Verdict | None],
    unit: Unit,
    steps: Sequence[LiveStep],
) -> TryChat:
    before, after = verdicts
    # A try asks one group of criteria, so a chat has one unit.
    return TryChat(
        chat=row,
        split=split,
        consensus=consensus,
        before=before,
        after=after,
        change=change(
            human=HUMAN.get(Consensus.State(consensus)) if consensus else None,
            before=before.value if before else None,
            after=after.value if after else None,
        ),
        state=unit.state,
        error=unit.error,
        steps=() if after else tuple(steps),
    )


def live_steps(runs: Collection[int]) -> dict[tuple[int, int], list[LiveStep]]:
    """Return by run and chat the calls of units in work; answers from the store are not among them."""
    rows = Attempt.objects.filter(run__in=runs, unit__state=Unit.State.LEASED).select_related("call", "unit")
    calls: dict[tuple[int, int], dict[int, ModelCall]] = {}
    for row in rows.order_by("id"):
        if row.unit is not None and row.run_id is not None:
            calls.setdefault((row.run_id, row.unit.chat_id), {})[row.call_id] = row.call
    return {chat: [_live(call) for call in by_id.values()] for chat, by_id in calls.items()}


def _live(call: ModelCall) -> LiveStep:
    return LiveStep(
        title=TITLES.get(call.role, call.role),
        state=ModelCall.State(call.state).label,
        text=call.reply if call.role == "formatter" else prose(call.reply),
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
    )


def has_other_recipe(before: Judge, now: Judge) -> bool:
    """Return whether judges differ in more than prompts: engine, samples, knowledge or roles."""
    was, is_now = before.config, now.config
    if any(was.get(name) != is_now.get(name) for name in ("engine", "endpoint", "samples")):
        return True
    if was.get("knowledge", {}).get("mode") != is_now.get("knowledge", {}).get("mode"):
        return True
    # A judge of more criteria has roles that the smaller one does not need.
    return any(was.get("roles", {}).get(role) != how for role, how in is_now.get("roles", {}).items())


def usual_chat(*, criterion: Criterion, user: User, latest: LatestVerdicts) -> Chat | None:
    """Return the chat of a preview: the shortest of the newest disagreements, else the first dev chat."""
    members = members_to_try(criterion=criterion, user=user)
    disagreements = latest.disagreements.filter(chat__in=members.values("chat"))
    newest = list(disagreements.values_list("chat_id", flat=True)[:NEWEST])
    if newest:
        return Chat.objects.filter(pk__in=newest).order_by("char_count", "-pk").first()
    first = members.order_by("split", "-chat_set", "position").select_related("chat").first()
    return first.chat if first else None
