"""The chats beside the editor: pinned, disagreeing and agreeing ones, with verdicts before and after."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, zip_longest
from typing import Any, Literal

from django.db.models import Count, Q, QuerySet, Sum

from alignment.comparison.queries.latest_verdicts import LatestVerdicts, latest_verdicts
from alignment.comparison.queries.rationales import short_rationale
from alignment.models.pins import PinnedChat
from alignment.prompts.queries.example_picker import chats_with_words
from alignment.prompts.tries.core import Change, change
from alignment.prompts.tries.queries.results import (
    HUMAN,
    TRY_OPTIONS,
    LiveStep,
    live_steps,
    members_to_try,
    tries_of,
)
from evaluation.engines.core.quotes import Quote, find_quotes
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import UNITS_LEFT, ModelCall, Run, Unit, UnitCall, Verdict
from evaluation.prompts.queries.versions import champions
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.queries.steps import final_rationales
from labeling.models.chats import Chat
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion

DISAGREEING, AGREEING, MOST_SHOWN = 3, 2, 20
# Agreeing chats among which those with the topics of the others are preferred.
CONSIDERED = 40
FOUND = 20  # chats of a search
AGREES = Q(value=True, human=Consensus.State.TRUE) | Q(value=False, human=Consensus.State.FALSE)
OPEN_RUNS = (Run.State.RUNNING, Run.State.PAUSED)

Group = Literal["pinned", "disagreeing", "agreeing", "other"]


@dataclass(frozen=True, slots=True)
class Before:
    """The verdicts to compare with; `version` wrote them, None if the judges used several prompts."""

    latest: LatestVerdicts
    version: PromptVersion | None


@dataclass(frozen=True, slots=True)
class Spent:
    """Known dollars (None if a price is unknown) and milliseconds of a chat's calls."""

    cost: Decimal | None
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class BenchChat:
    """A chat beside the editor: the consensus, the verdicts before and after, and the words they rest on.

    `human` is None without a True or False consensus; `votes` says how many raters gave it. `unit` is the
    chat's work in the author's newest try, `current` whether that tried the text as it is now.
    """

    chat: Chat
    split: str
    group: Group
    consensus: str
    votes: str
    before: Verdict | None
    unit: Unit | None
    after: Verdict | None
    current: bool
    quote: Quote | None
    rationale: str
    spent: Spent | None
    steps: tuple[LiveStep, ...]

    @property
    def human(self) -> bool | None:
        """The consensus, if it is True or False."""
        return HUMAN.get(Consensus.State(self.consensus)) if self.consensus else None

    @property
    def change(self) -> Change:
        """The change of the verdict, compared with the consensus."""
        before = self.before.value if self.before else None
        return change(human=self.human, before=before, after=self.after.value if self.after else None)

    @property
    def pending(self) -> bool:
        """Whether its try goes on."""
        going = self.unit is not None and self.unit.state in UNITS_LEFT
        return going and self.unit is not None and self.unit.run.state in OPEN_RUNS

    @property
    def at(self) -> datetime | None:
        """When its newest try ended."""
        return self.unit.finished_at if self.unit else None

    @property
    def token(self) -> str:
        """Changes whenever the page has to show the chat anew."""
        unit = self.unit
        now = f"{unit.run_id}{unit.state[0]}{len(self.steps)}" if unit else ""
        return f"{self.chat.pk}.{now}{int(self.current)}"


@dataclass(frozen=True, slots=True)
class Bench:
    """All chats in their order, and the author's newest try of the criterion."""

    chats: tuple[BenchChat, ...]
    before: Before
    newest: Run | None

    @property
    def pending(self) -> int:
        """The number of chats whose try goes on."""
        return sum(chat.pending for chat in self.chats)

    @property
    def agreement_before(self) -> tuple[int, int]:
        """Chats on which the verdict before equals the consensus, of those with both."""
        return _agreement((one.human, one.before) for one in self.chats)

    @property
    def agreement_after(self) -> tuple[int, int]:
        """The same of the draft as it is now."""
        return _agreement((one.human, one.after if one.current else None) for one in self.chats)

    def of(self, group: Group) -> list[BenchChat]:
        """Return the chats of one group."""
        return [chat for chat in self.chats if chat.group == group]

    @property
    def groups(self) -> list[tuple[str, list[BenchChat]]]:
        """The groups that have chats, with their headings."""
        named: tuple[tuple[str, Group], ...] = (
            ("Pinned", "pinned"),
            ("Disagreements", "disagreeing"),
            ("Chats that agree, for contrast", "agreeing"),
            ("Chats without a verdict to compare with", "other"),
        )
        return [(words, rows) for words, group in named if (rows := self.of(group))]


def bench_of(
    *,
    criterion: Criterion,
    author: User,
    base: PromptVersion,
    digest: str,
    disagreeing: int = DISAGREEING,
    agreeing: int = AGREEING,
) -> Bench:
    """Return the chats to try the author's draft on; constant number of queries.

    `base` is the version that the draft starts from, `digest` the hash of the draft's text and examples.
    """
    before = verdicts_before(criterion=criterion, base=base)
    members = members_to_try(criterion=criterion, user=author)
    groups = _choose(criterion, author, before.latest, members, disagreeing, agreeing)
    tried = _tried(criterion, _newest_units(criterion, author, groups), digest)
    newest = tries_of(criterion=criterion, author=author).first()
    return Bench(tuple(_chats(criterion, before.latest, members, groups, tried)), before, newest)


def verdicts_before(*, criterion: Criterion, base: PromptVersion) -> Before:
    """Return the verdicts of `base`; of the released version if `base` never ran, else those of any judge."""
    latest = latest_verdicts(criterion=criterion, champion=base)
    if latest.by_champion:
        return Before(latest, base)
    champion = champions(criteria=[criterion]).get(criterion.pk)
    if champion is not None and champion.content_hash != base.content_hash:
        latest = latest_verdicts(criterion=criterion, champion=champion)
    return Before(latest, champion if latest.by_champion else None)


def chats_found(*, criterion: Criterion, author: User, words: str) -> list[Chat]:
    """Return train and dev chats that have these words in id or text, the newest first."""
    chats = Chat.objects.filter(pk__in=members_to_try(criterion=criterion, user=author).values("chat"))
    return list(chats_with_words(chats, words).select_related("topic").order_by("-pk")[:FOUND])


# ---------- which chats ----------


def _choose(
    criterion: Criterion,
    author: User,
    latest: LatestVerdicts,
    members: QuerySet[Any],
    disagreeing: int,
    agreeing: int,
) -> dict[int, Group]:
    """Return the group of each chat to show, in order."""
    among = members.values("chat")
    pins = PinnedChat.objects.filter(author=author, criterion=criterion, chat__in=among).order_by("-pk")
    chosen: dict[int, Group] = dict.fromkeys(pins.values_list("chat", flat=True)[:MOST_SHOWN], "pinned")
    wrong = latest.disagreements.filter(chat__in=among).exclude(chat__in=list(chosen))
    for pk in wrong.values_list("chat_id", flat=True)[:disagreeing]:
        chosen[pk] = "disagreeing"
    topics = set(Chat.objects.filter(pk__in=chosen).values_list("topic", flat=True))
    right = latest.on(among).filter(AGREES, state=Verdict.State.READ)
    found = right.exclude(chat__in=list(chosen)).values_list("chat_id", "value", "chat__topic")[:CONSIDERED]
    near = sorted(found, key=lambda row: row[2] not in topics)
    sides = ([pk for pk, value, _ in near if value is side] for side in (True, False))
    both = chain.from_iterable(zip_longest(*sides))
    for pk in [pk for pk in both if pk is not None][:agreeing]:
        chosen[pk] = "agreeing"
    if set(chosen.values()) <= {"pinned"}:  # nothing is judged and labelled yet
        others = members.exclude(chat__in=list(chosen)).order_by("split", "-chat_set", "position")
        for pk in dict.fromkeys(others.values_list("chat", flat=True)[: disagreeing + agreeing]):
            chosen[pk] = "other"
    return chosen


# ---------- what they show ----------


@dataclass(frozen=True, slots=True)
class _Tried:
    """The author's newest tries by chat, and which of them tried the text as it is now."""

    units: Mapping[int, Unit]
    verdicts: Mapping[int, Verdict]
    spent: Mapping[int, Spent]
    steps: Mapping[tuple[int, int], Sequence[LiveStep]]
    current: frozenset[int]


def _tried(criterion: Criterion, units: Mapping[int, Unit], digest: str) -> _Tried:
    hashes = _tried_hashes(units.values())
    return _Tried(
        units=units,
        verdicts=_verdicts(criterion, units.values()),
        spent=_spent(units.values()),
        steps=live_steps([unit.run_id for unit in units.values()]),
        current=frozenset(pk for pk, unit in units.items() if hashes[unit.run_id] == digest),
    )


def _chats(
    criterion: Criterion,
    latest: LatestVerdicts,
    members: QuerySet[Any],
    groups: Mapping[int, Group],
    tried: _Tried,
) -> Iterable[BenchChat]:
    splits = dict(members.filter(chat__in=groups).order_by("-split").values_list("chat", "split"))
    rows = Chat.objects.filter(pk__in=groups).select_related("topic").in_bulk()
    consensus = {row.chat_id: row for row in Consensus.objects.filter(criterion=criterion, chat__in=groups)}
    old = {row.chat_id: row for row in latest.on(groups.keys())}
    reasons = _rationales([*old.values(), *tried.verdicts.values()])
    for pk, group in groups.items():
        unit, verdict = tried.units.get(pk), tried.verdicts.get(pk)
        shown = verdict or old.get(pk)
        text = reasons.get(shown.pk, "") if shown else ""
        state, votes = _votes(consensus.get(pk))
        yield BenchChat(
            chat=rows[pk],
            split=splits[pk],
            group=group,
            consensus=state,
            votes=votes,
            before=old.get(pk),
            unit=unit,
            after=verdict,
            current=pk in tried.current,
            quote=next(iter(find_quotes(text=text, chat=core_chat(rows[pk]))), None),
            rationale=short_rationale(text),
            spent=tried.spent.get(unit.pk) if unit else None,
            steps=tuple(tried.steps.get((unit.run_id, pk), ())) if unit and not verdict else (),
        )


def _newest_units(criterion: Criterion, author: User, chats: Collection[int]) -> dict[int, Unit]:
    """Return by chat the newest work of a try that goes on or has ended."""
    tried = Unit.objects.filter(
        chat__in=chats,
        run__purpose=Run.Purpose.TRY,
        run__started_by=author,
        **{f"run__options__{TRY_OPTIONS}__criterion": criterion.key},
    ).exclude(state__in=UNITS_LEFT, run__state=Run.State.CANCELLED)
    units: dict[int, Unit] = {}
    for unit in tried.select_related("run__judge").order_by("-run_id"):
        units.setdefault(unit.chat_id, unit)
    return units


def _verdicts(criterion: Criterion, units: Collection[Unit]) -> dict[int, Verdict]:
    rows = Verdict.objects.filter(criterion=criterion, unit__in=[unit.pk for unit in units])
    return {row.chat_id: row for row in rows}


def _tried_hashes(units: Collection[Unit]) -> dict[int, str]:
    """Return by run the hash of the text and examples that it tried."""
    tried = {unit.run_id: unit.run.options[TRY_OPTIONS]["prompt"] for unit in units}
    known = PromptVersion._base_manager.filter(pk__in=tried.values()).values_list("pk", "content_hash")
    hashes = dict(known)
    return {run: hashes.get(prompt, "") for run, prompt in tried.items()}


def _rationales(verdicts: Sequence[Verdict]) -> dict[int, str]:
    final = final_rationales(verdicts)
    return {row.pk: row.rationale or final.get(row.pk, "") or row.explanation for row in verdicts}


def _spent(units: Collection[Unit]) -> dict[int, Spent]:
    rows = UnitCall.objects.filter(unit__in=[unit.pk for unit in units]).order_by()
    sums = rows.values("unit").annotate(
        cost=Sum("call__cost_usd"),
        latency=Sum("call__latency_ms"),
        unpriced=Count("pk", filter=Q(call__cost_usd=None) & ~Q(call__state=ModelCall.State.FAILED)),
    )
    return {row["unit"]: Spent(None if row["unpriced"] else row["cost"], row["latency"]) for row in sums}


def _votes(consensus: Consensus | None) -> tuple[str, str]:
    """Return the state, and how many raters gave it; "" if they were no majority: a lead decided."""
    if consensus is None:
        return "", ""
    counts: Mapping[str, int] = {
        Consensus.State.TRUE: consensus.n_true,
        Consensus.State.FALSE: consensus.n_false,
        Consensus.State.NA: consensus.n_na,
    }
    total, given = sum(counts.values()), counts.get(consensus.state, 0)
    return consensus.state, f"{given} of {total}" if 2 * given > total else ""


def _agreement(pairs: Iterable[tuple[bool | None, Verdict | None]]) -> tuple[int, int]:
    compared = [
        human is verdict.value
        for human, verdict in pairs
        if human is not None and verdict is not None and verdict.value is not None
    ]
    return sum(compared), len(compared)
