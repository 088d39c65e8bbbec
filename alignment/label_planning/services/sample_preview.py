"""Preview of a sample for labelling: its chats, and the labels to expect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alignment.comparison.queries.near_duplicates import candidates_of
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.core import (
    Expected,
    MissingLabels,
    Sizes,
    fewest_others,
    sizes_within,
    smallest_sizes,
)
from alignment.label_planning.queries.plan import CriterionPlan, criterion_plans
from alignment.label_planning.queries.sampling_frame import SamplingFrame, sampling_frame
from alignment.statistics.stratified_sampling import (
    Allocation,
    SampledChat,
    allocate_sample,
    effective_size,
    sample_chats,
)
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationError, AllocationRule
from labeling.chats.core.splits import proportions_of, splits_of
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

MOST = 5000  # chats of one sample, more than a team labels


class NoEligibleChats(InputProblem):
    """No chat of the run is eligible for these criteria."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """The sample that a lead requests.

    chats : sample size. suspect : how many of them the judge marked False on one of the criteria. None
    means as many as a status needs. topics : keys; empty means all. split : '' keeps the split of
    each chat, otherwise proportions. source : equal for repeated submissions of one form.
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
class Forecast:
    """One criterion: the labels that a status needs, and the False labels expected from the sample."""

    criterion: Criterion
    missing_false: int
    missing_true: int
    expected: Expected

    @property
    def reaches(self) -> bool:
        """Whether the sample is expected to bring the missing False and True labels."""
        true = self.expected.n - round(self.expected.about)
        return round(self.expected.about) >= self.missing_false and true >= self.missing_true


@dataclass(frozen=True, slots=True)
class SamplePreview:
    """Sample sizes by stratum, expected labels by criterion, and the eligible chats.

    of_part : whether the sample is limited to some topics or to a part of the run.
    """

    shares: tuple[Allocation, ...]
    forecasts: tuple[Forecast, ...]
    available: Sizes
    of_part: bool = False

    @property
    def effective_chats(self) -> int:
        """Size of a simple random sample with the same precision; 0 if some chats have no chance."""
        chances = [share.probability for share in self.shares for _ in range(share.n)]
        return 0 if self.without_chance or self.of_part else int(effective_size(chances) + 1e-9)

    @property
    def chats(self) -> int:
        """Sample size."""
        return sum(share.n for share in self.shares)

    @property
    def suspect(self) -> int:
        """Sampled chats that the judge marked False."""
        return sum(share.n for share in self.shares if share.stratum.suspect)

    @property
    def without_chance(self) -> int:
        """Chats in strata without a sampled chat: they have no chance."""
        return sum(share.stratum.size for share in self.shares if not share.n)

    @property
    def without_topic(self) -> int:
        """Chats without a chance because of their topic: chats with their verdict are sampled elsewhere."""
        sampled = {share.stratum.suspect for share in self.shares if share.n}
        return sum(
            share.stratum.size for share in self.shares if not share.n and share.stratum.suspect in sampled
        )

    @property
    def reaches(self) -> bool:
        """Whether every criterion is expected to get its missing labels."""
        return all(row.reaches for row in self.forecasts)

    @property
    def oversampled(self) -> bool:
        """Whether chats judged False are over- or under-represented."""
        total = self.available.suspect + self.available.other
        return abs(self.suspect - self.chats * self.available.suspect / total) >= 1 if total else False

    def by_verdict(self) -> list[dict[str, Any]]:
        """Return size, sample size and range of probabilities of the two kinds of chat."""
        kinds = []
        for suspect in (True, False):
            own = [share for share in self.shares if share.stratum.suspect is suspect]
            chances = [share.probability for share in own]
            kinds.append(
                {
                    "suspect": suspect,
                    "size": sum(share.stratum.size for share in own),
                    "n": sum(share.n for share in own),
                    "low": min(chances, default=None),
                    "high": max(chances, default=None),
                }
            )
        return kinds


@dataclass(frozen=True, slots=True)
class PlannedSample:
    """A sample to store: its chats and their splits, and the earlier samples it excludes."""

    preview: SamplePreview
    earlier: tuple[int, ...]
    chats: Sequence[SampledChat]
    splits: Mapping[int, str]


def preview_sample(wish: SampleRequest, *, by: User) -> SamplePreview:
    """Preview the sample without writing it. Raises InputProblem if the request cannot be met."""
    _, preview = _preview(wish, by)
    return preview


def plan_sample(wish: SampleRequest, *, by: User) -> PlannedSample:
    """Choose the chats of the sample; writes nothing. Raises InputProblem if the request cannot be met."""
    frame, preview = _preview(wish, by)
    chats = sample_chats(preview.shares, seed=wish.seed)
    return PlannedSample(preview, frame.samples, chats, _splits(chats, frame, wish))


def _preview(wish: SampleRequest, by: User) -> tuple[SamplingFrame, SamplePreview]:
    if not wish.criteria:
        raise InputProblem("choose at least one criterion")
    if wish.split:
        _proportions(wish.split)
    keys = {row.key for row in wish.criteria}
    plans = [plan for plan in criterion_plans(wish.scope) if plan.criterion.key in keys]
    frame = sampling_frame(wish.scope, criteria=wish.criteria, user=by, topics=wish.topics)
    available = Sizes(frame.size(suspect=True), frame.size(suspect=False))
    if not available.suspect + available.other:
        raise NoEligibleChats(
            "no chat is eligible: each has a label on these criteria, or is in an open job or an earlier"
            " sample. Import more chats"
        )
    sizes = _sizes(wish, plans, frame, available)
    if not sizes.suspect + sizes.other:
        raise InputProblem("these criteria have enough labels for a status: enter the number of chats")
    try:
        shares = allocate_sample(
            frame.strata,
            chats=sizes.suspect + sizes.other,
            suspect=sizes.suspect,
            rule=wish.rule,
            minimum=wish.minimum,
        )
    except AllocationError as error:
        raise InputProblem(str(error)) from error
    forecasts = tuple(_forecast(plan, frame, shares) for plan in plans)
    of_part = bool(wish.topics) or wish.scope.is_part
    return frame, SamplePreview(tuple(shares), forecasts, available, of_part)


def _forecast(plan: CriterionPlan, frame: SamplingFrame, shares: Sequence[Allocation]) -> Forecast:
    expected = frame.expected(shares, criterion=plan.criterion, labels=plan.shares)
    true = next(part.missing for part in plan.status.parts if part.asked == "true")
    return Forecast(plan.criterion, plan.status.missing_false, true, expected)


def _sizes(
    wish: SampleRequest, plans: Sequence[CriterionPlan], frame: SamplingFrame, available: Sizes
) -> Sizes:
    """Return the requested sizes; those left empty are what a status needs."""
    needed = smallest_sizes(
        [_missing(plan, frame) for plan in plans], suspect=available.suspect, other=available.other
    )
    if wish.chats is None:
        if wish.suspect is None:
            return _checked(needed.suspect, min(needed.other, MOST - needed.suspect))
        other = min(max(needed.other, fewest_others(wish.suspect)), available.other, MOST - wish.suspect)
        return _checked(wish.suspect, other)
    if wish.chats > (total := available.suspect + available.other):
        raise InputProblem(
            f"{wish.chats:,} chats requested, {total:,} are eligible (without a label, and not in an open"
            " job or an earlier sample). Enter a smaller number"
        )
    if wish.suspect is None:
        return sizes_within(
            wish.chats, target=needed.suspect, suspect=available.suspect, other=available.other
        )
    if wish.suspect > wish.chats:
        raise InputProblem(
            f"{wish.suspect:,} chats judged False do not fit into a sample of {wish.chats:,}: raise the"
            " number of chats"
        )
    return _checked(wish.suspect, wish.chats - wish.suspect)


def _checked(suspect: int, other: int) -> Sizes:
    if suspect + other > MOST:
        raise InputProblem(f"a sample has at most {MOST:,} chats")
    return Sizes(suspect, max(0, other))


def _missing(plan: CriterionPlan, frame: SamplingFrame) -> MissingLabels:
    need = plan.status
    shares = {
        suspect: frame.share_of_false(plan.criterion, plan.shares, suspect=suspect)
        for suspect in (True, False)
    }
    true = next(part.missing for part in need.parts if part.asked == "true")
    return MissingLabels(need.missing_false, true, need.missing_chats, shares[True], shares[False])


def _splits(chats: Sequence[SampledChat], frame: SamplingFrame, wish: SampleRequest) -> Mapping[int, str]:
    """Assign splits by chat, near-duplicates together. Holdout stays holdout, train stays train."""
    if not wish.split:
        return frame.splits
    movable = {one.chat for one in chats if frame.splits[one.chat] == Split.DEV}
    whole = candidates_of(replace(wish.scope, split="", without_holdout=frozenset()))
    rows = [replace(one, split="" if chat in movable else frame.splits[chat]) for chat, one in whole.items()]
    splits = splits_of(rows, _proportions(wish.split))
    return {**frame.splits, **{chat: splits[whole[chat].external_id] for chat in movable}}


def _proportions(text: str) -> Mapping[str, float]:
    try:
        return proportions_of(text)
    except InputProblem as problem:
        raise InputProblem(str(problem).removeprefix("--split: ")) from problem
