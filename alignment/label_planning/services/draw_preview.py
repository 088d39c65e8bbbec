"""What a draw of chats for labelling would take, and what it may bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alignment.comparison.queries.near_duplicates import candidates_of
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.core import Expected, Sizes, Wanted, first_sizes, others_beside, split_of
from alignment.label_planning.queries.plan import CriterionPlan, criterion_plans
from alignment.label_planning.queries.sampling_frame import Frame, label_frame
from alignment.statistics.stratified_sampling import DrawnChat, Share, drawn, effective_size, shared
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationError, AllocationRule
from labeling.chats.core.splits import proportions_of, splits_of
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

MOST = 5000  # more chats than anybody labels of one draw


class NothingLeft(InputProblem):
    """No chat of the run can be drawn for these criteria."""


@dataclass(frozen=True, slots=True)
class DrawWish:
    """What a lead asks for.

    `suspect` of the `chats` are such as the judge calls False on one of the criteria; None: as many as a
    badge misses. `topics` by key, none: all. `split`: '' keeps each chat's, else proportions. `source` is
    equal for a form pressed twice.
    """

    scope: Scope
    criteria: tuple[Criterion, ...]
    name: str = ""
    chats: int | None = None
    suspect: int | None = None
    topics: tuple[str, ...] = ()
    rule: AllocationRule = AllocationRule.PROPORTIONAL
    minimum: int = 0
    seed: int = 0
    split: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Outlook:
    """One criterion: the False answers a badge misses, and what the draw may bring."""

    criterion: Criterion
    missing_false: int
    missing_true: int
    expected: Expected

    @property
    def reaches(self) -> bool:
        """Whether about as many False and True answers are expected as are missing."""
        true = self.expected.n - round(self.expected.about)
        return round(self.expected.about) >= self.missing_false and true >= self.missing_true


@dataclass(frozen=True, slots=True)
class DrawPreview:
    """What would be drawn, by stratum; what it may bring, by criterion; the chats there are."""

    shares: tuple[Share, ...]
    outlook: tuple[Outlook, ...]
    available: Sizes
    of_part: bool = False

    @property
    def worth(self) -> int:
        """How many chats drawn at random a rate over all chats may count; 0 where some have no chance."""
        chances = [share.probability for share in self.shares for _ in range(share.n)]
        return 0 if self.left_out or self.of_part else int(effective_size(chances) + 1e-9)

    @property
    def chats(self) -> int:
        """Chats to draw."""
        return sum(share.n for share in self.shares)

    @property
    def suspect(self) -> int:
        """Those of them that the judge calls False."""
        return sum(share.n for share in self.shares if share.stratum.suspect)

    @property
    def left_out(self) -> int:
        """Chats of strata that give none: they have no chance to be drawn."""
        return sum(share.stratum.size for share in self.shares if not share.n)

    @property
    def without_topic(self) -> int:
        """Those of them whose topic gives none, though chats of their verdict are drawn."""
        given = {share.stratum.suspect for share in self.shares if share.n}
        return sum(
            share.stratum.size for share in self.shares if not share.n and share.stratum.suspect in given
        )

    @property
    def reaches(self) -> bool:
        """Whether as much is expected as every criterion misses."""
        return all(row.reaches for row in self.outlook)

    @property
    def oversampled(self) -> bool:
        """Whether chats that the judge calls False come more, or less, often than they are."""
        total = self.available.suspect + self.available.other
        return abs(self.suspect - self.chats * self.available.suspect / total) >= 1 if total else False

    def by_verdict(self) -> list[dict[str, Any]]:
        """The two kinds of chat: how many there are and are drawn, and the range of their probabilities."""
        found = []
        for suspect in (True, False):
            own = [share for share in self.shares if share.stratum.suspect is suspect]
            chances = [share.probability for share in own]
            found.append(
                {
                    "suspect": suspect,
                    "size": sum(share.stratum.size for share in own),
                    "n": sum(share.n for share in own),
                    "low": min(chances, default=None),
                    "high": max(chances, default=None),
                }
            )
        return found


@dataclass(frozen=True, slots=True)
class PlannedDraw:
    """A draw to be stored: its chats and their splits, computed while `draws` were all that there were."""

    preview: DrawPreview
    draws: tuple[int, ...]
    chats: Sequence[DrawnChat]
    splits: Mapping[int, str]


def label_draw_preview(wish: DrawWish, *, by: User) -> DrawPreview:
    """What would be drawn; nothing is made. Raises InputProblem where it cannot be."""
    _, preview = _planned(wish, by)
    return preview


def draw_planned(wish: DrawWish, *, by: User) -> PlannedDraw:
    """The draw itself, computed and not yet written. Raises InputProblem where there can be none."""
    frame, preview = _planned(wish, by)
    chats = drawn(preview.shares, seed=wish.seed)
    return PlannedDraw(preview, frame.draws, chats, _splits(chats, frame, wish))


def _planned(wish: DrawWish, by: User) -> tuple[Frame, DrawPreview]:
    if not wish.criteria:
        raise InputProblem("choose at least one criterion")
    if wish.split:
        _proportions(wish.split)
    keys = {row.key for row in wish.criteria}
    plans = [plan for plan in criterion_plans(wish.scope) if plan.criterion.key in keys]
    frame = label_frame(wish.scope, criteria=wish.criteria, user=by, topics=wish.topics)
    available = Sizes(frame.size(suspect=True), frame.size(suspect=False))
    if not available.suspect + available.other:
        raise NothingLeft(
            "no chat is left to draw: each has a label on these criteria, or is in an open job or an earlier"
            " draw"
        )
    sizes = _sizes(wish, plans, frame, available)
    if not sizes.suspect + sizes.other:
        raise InputProblem("no label is missing for a badge: say how many chats to draw")
    try:
        shares = shared(
            frame.strata,
            chats=sizes.suspect + sizes.other,
            suspect=sizes.suspect,
            rule=wish.rule,
            minimum=wish.minimum,
        )
    except AllocationError as error:
        raise InputProblem(str(error)) from error
    outlook = tuple(_outlook(plan, frame, shares) for plan in plans)
    of_part = bool(wish.topics) or wish.scope.is_part
    return frame, DrawPreview(tuple(shares), outlook, available, of_part)


def _outlook(plan: CriterionPlan, frame: Frame, shares: Sequence[Share]) -> Outlook:
    expected = frame.expected(shares, criterion=plan.criterion, seen=plan.shares)
    true = next(part.missing for part in plan.badge.parts if part.asked == "true")
    return Outlook(plan.criterion, plan.badge.missing_false, true, expected)


def _sizes(wish: DrawWish, plans: Sequence[CriterionPlan], frame: Frame, available: Sizes) -> Sizes:
    """As asked for; what was left open is what a badge misses."""
    fitting = first_sizes(
        [_wanted(plan, frame) for plan in plans], suspect=available.suspect, other=available.other
    )
    if wish.chats is None:
        if wish.suspect is None:
            return _checked(fitting.suspect, min(fitting.other, MOST - fitting.suspect))
        other = min(max(fitting.other, others_beside(wish.suspect)), available.other, MOST - wish.suspect)
        return _checked(wish.suspect, other)
    if wish.chats > (total := available.suspect + available.other):
        raise InputProblem(
            f"{wish.chats:,} chats were asked for, and there are {total:,} without a label"
            " that no open job asks for"
        )
    if wish.suspect is None:
        return split_of(wish.chats, wanted=fitting.suspect, suspect=available.suspect, other=available.other)
    if wish.suspect > wish.chats:
        raise InputProblem(
            f"{wish.suspect:,} of the chats cannot be judged False: only {wish.chats:,} are drawn"
        )
    return _checked(wish.suspect, wish.chats - wish.suspect)


def _checked(suspect: int, other: int) -> Sizes:
    if suspect + other > MOST:
        raise InputProblem(f"a draw has at most {MOST:,} chats")
    return Sizes(suspect, max(0, other))


def _wanted(plan: CriterionPlan, frame: Frame) -> Wanted:
    need = plan.badge
    shares = {
        suspect: frame.share_of_false(plan.criterion, plan.shares, suspect=suspect)
        for suspect in (True, False)
    }
    true = next(part.missing for part in need.parts if part.asked == "true")
    return Wanted(need.missing_false, true, need.missing_chats, shares[True], shares[False])


def _splits(chats: Sequence[DrawnChat], frame: Frame, wish: DrawWish) -> Mapping[int, str]:
    """By chat, near-duplicates together. What is held out stays so, and what prompts may show stays train."""
    if not wish.split:
        return frame.splits
    loose = {one.chat for one in chats if frame.splits[one.chat] == Split.DEV}
    whole = candidates_of(replace(wish.scope, split="", without_holdout=frozenset()))
    given = [replace(one, split="" if chat in loose else frame.splits[chat]) for chat, one in whole.items()]
    found = splits_of(given, _proportions(wish.split))
    return {**frame.splits, **{chat: found[whole[chat].external_id] for chat in loose}}


def _proportions(text: str) -> Mapping[str, float]:
    try:
        return proportions_of(text)
    except InputProblem as problem:
        raise InputProblem(str(problem).removeprefix("--split: ")) from problem
