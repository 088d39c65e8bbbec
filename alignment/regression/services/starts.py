"""Estimate and start of a regression test from a form or the API."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from django.db import IntegrityError, transaction

from alignment.models.regressions import RegressionTest
from alignment.regression.core import gate_power
from alignment.regression.queries.holdout_access import HoldoutUse, holdout_uses
from alignment.regression.queries.plan import LabelledChats, labelled_chats, opens_holdout
from alignment.regression.queries.tests import gate_policy
from alignment.regression.services.tests import (
    RegressionChoice,
    RegressionRefused,
    judge_test_start,
    judged_criteria,
    nothing_new,
    prompt_test_start,
    refuse_errors,
    tested_criteria,
)
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.services.estimates import PlannedRun, planned_as, planned_estimate, planned_for
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker.estimate import Estimate
from labeling.models.people import User

# Chats examined for an estimate; the result is scaled up to the whole set.
MOST_CHATS = 200


@dataclass(frozen=True, slots=True)
class RegressionRequest:
    """The test that a user requests, of one prompt (`candidate`) or of a whole judge (`judge`).

    baseline : a finished run in place of the champion. prompts : prompts of the candidate judge.
    """

    choice: RegressionChoice
    candidate: PromptVersion | None = None
    judge: JudgeSpec | None = None
    baseline: Run | None = None
    prompts: Sequence[PromptVersion] = ()


@dataclass(frozen=True, slots=True)
class StartedTest:
    """A test; `again` if an earlier submission of the form started it."""

    test: RegressionTest
    again: bool = False


@dataclass(frozen=True)
class RegressionEstimate:
    """Calls and cost of a test by run, and in total under the names of a run estimate.

    champion : None with a finished run as baseline. noise : None without a repeated run of the champion.
    criteria : keys of the judged criteria.
    """

    criteria: tuple[str, ...]
    candidate: Estimate
    champion: Estimate | None = None
    noise: Estimate | None = None

    @property
    def runs(self) -> list[tuple[str, Estimate]]:
        """The runs to start, with their names."""
        estimates = ("Champion", self.champion), ("Candidate", self.candidate), ("Champion again", self.noise)
        return [(name, run) for name, run in estimates if run is not None]

    @property
    def confirming(self) -> int:
        """Maximum calls of the confirming run, which starts only after a fail."""
        return self.candidate.calls + self.candidate.reused

    @property
    def chats(self) -> int:
        """Chats that both judges score."""
        return self.candidate.chats

    @property
    def walked(self) -> int:
        """Chats examined for the estimate."""
        return self.candidate.walked

    @property
    def units(self) -> int:
        """Units of work of all runs."""
        return sum(run.units for _, run in self.runs)

    @cached_property
    def calls(self) -> int:
        """Calls to send."""
        return sum(run.calls for _, run in self.runs)

    @property
    def reused(self) -> int:
        """Calls with a stored answer."""
        return sum(run.reused for _, run in self.runs)

    @property
    def windowed(self) -> int:
        """Units judged in parts."""
        return sum(run.windowed for _, run in self.runs)

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens."""
        return sum(run.prompt_tokens for _, run in self.runs)

    @property
    def completion_tokens(self) -> int:
        """Maximum completion tokens."""
        return sum(run.completion_tokens for _, run in self.runs)

    @property
    def cost_usd(self) -> Decimal | None:
        """Maximum cost; None if a price is unknown."""
        costs = [run.cost_usd for _, run in self.runs]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))

    @property
    def expected_prompt_tokens(self) -> int:
        """Expected prompt tokens."""
        return sum(run.expected_prompt_tokens for _, run in self.runs)

    @property
    def expected_completion_tokens(self) -> int:
        """Expected completion tokens."""
        return sum(run.expected_completion_tokens for _, run in self.runs)

    @property
    def expected_cost_usd(self) -> Decimal | None:
        """Expected cost; None if a price is unknown."""
        costs = [run.expected_cost_usd for _, run in self.runs]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))

    @property
    def expected_to_fit(self) -> bool:
        """Whether the expected cost of every run is within its budget."""
        return all(run.expected_to_fit for _, run in self.runs)

    @property
    def learned(self) -> float:
        """Smallest share of calls, by run, whose answer length comes from stored answers."""
        return min(run.learned for _, run in self.runs)

    @property
    def price_sources(self) -> list[str]:
        """Where the known prices are from."""
        return sorted({source for _, run in self.runs for source in run.price_sources})

    @property
    def seconds(self) -> float | None:
        """Duration at the pace of earlier runs; None if there is no such pace."""
        known = [run.seconds for _, run in self.runs if run.calls]
        return None if None in known else sum(seconds for seconds in known if seconds is not None)

    @property
    def budget_usd(self) -> Decimal | None:
        """Budget of each run."""
        return self.candidate.budget_usd

    @property
    def fits_budget(self) -> bool | None:
        """Whether every run stays within its budget; None without a budget or a cost."""
        fits = [run.fits_budget for _, run in self.runs]
        return None if None in fits else all(fits)


def profile_recipe(profile: JudgeProfile | None) -> tuple[JudgeProfile | None, JudgeSpec]:
    """Return the profile (None means the default one) and its recipe. Raises FieldProblem if invalid."""
    row = profile or default_profile()
    return row, profile_choice(row) if row else JudgeSpec("direct")


def source_hash(*parts: str) -> str:
    """Return an id that is equal for repeated submissions of one form."""
    return hashlib.sha256("\n".join(("regression", *parts)).encode()).hexdigest()


def regression_estimate(wish: RegressionRequest) -> RegressionEstimate:
    """Estimate calls and cost of a test; for a large set from a sample of its chats.

    Sends no request and writes nothing. Raises the same problems as regression_start.
    """
    prompts = [wish.candidate] if wish.candidate else wish.prompts
    refuse_errors(prompts)
    keys, judge = tested_keys(wish), wish.judge or wish.choice.judge
    run = RunChoice(criteria=keys, split=wish.choice.split, budget_usd=wish.choice.budget_usd)
    candidate = planned_for(
        chat_set=wish.choice.chat_set,
        judge=judge,
        run=run,
        endpoint=judge_endpoint(judge),
        prompts=prompts,
    )
    champion = (
        planned_as(wish.baseline, budget_usd=wish.choice.budget_usd)
        if wish.baseline
        else planned_for(
            chat_set=wish.choice.chat_set,
            judge=wish.choice.judge,
            run=run,
            endpoint=judge_endpoint(wish.choice.judge),
        )
    )
    if champion.fingerprint == candidate.fingerprint:
        raise RegressionRefused(nothing_new(wish.candidate))
    asked: set[str] = set()

    def estimate(plan: PlannedRun) -> Estimate:
        return planned_estimate(plan, most_chats=MOST_CHATS, asked=asked)

    return RegressionEstimate(
        criteria=keys,
        champion=None if wish.baseline else estimate(champion),
        candidate=estimate(candidate),
        noise=estimate(champion.again()) if wish.choice.noise else None,
    )


@dataclass(frozen=True, slots=True)
class Outlook:
    """Labels and power of a test, and its use of the holdout.

    opened : uses of the holdout for the criterion with most uses; None if the holdout is unused.
    """

    labelled: list[LabelledChats]
    power: str
    opens_holdout: bool
    opened: HoldoutUse | None


def regression_outlook(wish: RegressionRequest, keys: Sequence[str], *, by: User) -> Outlook:
    """Count the labels on the test's chats and describe the power of the gate.

    Small numbers of hidden holdout chats are excluded from the counts.
    """
    choice = wish.choice
    policy = gate_policy(choice.policy)
    counts = labelled_chats(chat_set=choice.chat_set, split=choice.split, keys=keys, user=by, policy=policy)
    opens = opens_holdout(chat_set=choice.chat_set, split=choice.split)
    criteria = [row.criterion for row in counts]
    opened = holdout_uses(criteria=criteria, chat_set=choice.chat_set, policy=policy) if opens else []
    blocking = [row for row in counts if row.blocks]
    fewest = min(blocking, key=lambda row: row.units, default=None)
    power = gate_power(
        fewest.n if fewest else 0,
        criteria=len(blocking),
        policy=policy,
        clusters=fewest.clusters if fewest else None,
    )
    return Outlook(counts, power, opens, next(iter(opened), None))


def regression_start(wish: RegressionRequest, *, by: User) -> StartedTest:
    """Start the test on the workers, or return the one that the same form has started.

    Raises RegressionRefused, RunRefused or InputProblem, with nothing started.
    """
    try:
        return _start(wish, by)
    except IntegrityError:
        # The second of two simultaneous submissions: the first one has stored its test.
        if (earlier := _started(wish)) is None:
            raise
        return earlier


def tested_keys(wish: RegressionRequest) -> tuple[str, ...]:
    """Return the keys of the test's criteria. Raises RegressionRefused."""
    if wish.candidate is not None:
        return tested_criteria(criterion=wish.candidate.criterion, choice=wish.choice)
    return judged_criteria(choice=wish.choice, baseline=wish.baseline)


@transaction.atomic
def _start(wish: RegressionRequest, by: User) -> StartedTest:
    if earlier := _started(wish):
        return earlier
    if wish.candidate is not None:
        return StartedTest(prompt_test_start(candidate=wish.candidate, choice=wish.choice, by=by))
    if wish.judge is None:
        raise RegressionRefused("choose a version or a judge to test")
    return StartedTest(
        judge_test_start(
            judge=wish.judge, choice=wish.choice, baseline=wish.baseline, prompts=wish.prompts, by=by
        )
    )


def _started(wish: RegressionRequest) -> StartedTest | None:
    source = wish.choice.source_hash
    earlier = RegressionTest.objects.filter(candidate_run__source_hash=source).first() if source else None
    return StartedTest(earlier, again=True) if earlier else None
