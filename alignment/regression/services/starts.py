"""Regression tests that a person asks for: what one would ask and cost, and starting it once."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from django.db import IntegrityError, transaction

from alignment.models.regressions import RegressionTest
from alignment.regression.core import gate_sight
from alignment.regression.queries.holdout_access import Opened, holdout_openings
from alignment.regression.queries.plan import Labelled, labelled, opens_holdout
from alignment.regression.queries.tests import gate_policy
from alignment.regression.services.tests import (
    RegressionChoice,
    RegressionRefused,
    judge_test_start,
    judged_criteria,
    nothing_new,
    prompt_test_start,
    tested_criteria,
)
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeChoice
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.services.estimates import Planned, planned_as, planned_estimate, planned_for
from evaluation.runs.services.runs import RunChoice
from evaluation.runs.worker.estimate import Estimate
from labeling.models.people import User

# A page does not wait for 100,000 chats to be walked: so many are looked at and the figures scaled up.
MOST_CHATS = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """A test as it was asked for: of one prompt (`candidate`), or of a whole judge (`judge`).

    `baseline` is a finished run in place of the champion's recipe; `prompts` go with the candidate's recipe.
    """

    choice: RegressionChoice
    candidate: PromptVersion | None = None
    judge: JudgeChoice | None = None
    baseline: Run | None = None
    prompts: Sequence[PromptVersion] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """A test; `again`: the same form had started it before."""

    test: RegressionTest
    again: bool = False


@dataclass(frozen=True)
class RegressionEstimate:
    """What a test would ask and cost, run by run; under the names of one run's estimate, together.

    `champion` is None where a finished run stands for it, `noise` where the champion is not asked again.
    `criteria` are the keys of those that are asked.
    """

    criteria: tuple[str, ...]
    candidate: Estimate
    champion: Estimate | None = None
    noise: Estimate | None = None

    @property
    def runs(self) -> list[tuple[str, Estimate]]:
        """The runs that would be started, under their names."""
        named = ("Champion", self.champion), ("Candidate", self.candidate), ("Champion again", self.noise)
        return [(name, run) for name, run in named if run is not None]

    @property
    def confirming(self) -> int:
        """Calls of the candidate's second run, at most; it is asked only where the first one fails."""
        return self.candidate.calls + self.candidate.reused

    @property
    def chats(self) -> int:
        """Chats that both sides judge."""
        return self.candidate.chats

    @property
    def walked(self) -> int:
        """Chats looked at; the figures are scaled up from them."""
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
        """Calls that are answered already."""
        return sum(run.reused for _, run in self.runs)

    @property
    def windowed(self) -> int:
        """Units judged in parts."""
        return sum(run.windowed for _, run in self.runs)

    @property
    def prompt_tokens(self) -> int:
        """Tokens in."""
        return sum(run.prompt_tokens for _, run in self.runs)

    @property
    def completion_tokens(self) -> int:
        """Tokens out, at most."""
        return sum(run.completion_tokens for _, run in self.runs)

    @property
    def cost_usd(self) -> Decimal | None:
        """At most; None where a price is unknown."""
        costs = [run.cost_usd for _, run in self.runs]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))

    @property
    def seconds(self) -> float | None:
        """What the calls take at the pace of earlier runs; None where one of these runs has no such pace."""
        known = [run.seconds for _, run in self.runs if run.calls]
        return None if None in known else sum(seconds for seconds in known if seconds is not None)

    @property
    def budget_usd(self) -> Decimal | None:
        """The cap of each run."""
        return self.candidate.budget_usd

    @property
    def fits_budget(self) -> bool | None:
        """Whether every run keeps under the cap; None without a cap or a cost."""
        fits = [run.fits_budget for _, run in self.runs]
        return None if None in fits else all(fits)


def profile_recipe(profile: JudgeProfile | None) -> tuple[JudgeProfile | None, JudgeChoice]:
    """A profile, else the default one, and its recipe. Raises FieldProblem for one that cannot be read."""
    row = profile or default_profile()
    return row, profile_choice(row) if row else JudgeChoice("direct")


def source_hash(*parts: str) -> str:
    """The mark that tells a second press of a button from a second test that is meant."""
    return hashlib.sha256("\n".join(("regression", *parts)).encode()).hexdigest()


def regression_estimate(wish: Wish) -> RegressionEstimate:
    """What the test would ask and cost today, both sides; of a large set from a part of its chats.

    Nothing is sent and nothing is kept. Raises what regression_start raises.
    """
    keys, endpoint = tested_keys(wish), current_endpoint()
    run = RunChoice(criteria=keys, split=wish.choice.split, budget_usd=wish.choice.budget_usd)
    candidate = planned_for(
        chat_set=wish.choice.chat_set,
        judge=wish.judge or wish.choice.judge,
        run=run,
        endpoint=endpoint,
        prompts=[wish.candidate] if wish.candidate else wish.prompts,
    )
    champion = (
        planned_as(wish.baseline, budget_usd=wish.choice.budget_usd)
        if wish.baseline
        else planned_for(chat_set=wish.choice.chat_set, judge=wish.choice.judge, run=run, endpoint=endpoint)
    )
    if champion.fingerprint == candidate.fingerprint:
        raise RegressionRefused(nothing_new(wish.candidate))
    asked: set[str] = set()

    def estimate(plan: Planned) -> Estimate:
        return planned_estimate(plan, most_chats=MOST_CHATS, asked=asked)

    return RegressionEstimate(
        criteria=keys,
        champion=None if wish.baseline else estimate(champion),
        candidate=estimate(candidate),
        noise=estimate(champion.again()) if wish.choice.noise else None,
    )


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a test could show: the labels there are, what the gate sees with them, the holdout it opens.

    `opened` is that of the criterion it was opened for most; None where it was never opened, or is not now.
    """

    labelled: list[Labelled]
    sight: str
    opens_holdout: bool
    opened: Opened | None


def regression_outlook(wish: Wish, keys: Sequence[str], *, by: User) -> Outlook:
    """The labels on the test's chats for its criteria, and in a sentence what so many let the gate see.

    Labels of few holdout chats are not counted for who may not read them.
    """
    choice = wish.choice
    counts = labelled(chat_set=choice.chat_set, split=choice.split, keys=keys, user=by)
    policy = gate_policy(choice.policy)
    opens = opens_holdout(chat_set=choice.chat_set, split=choice.split)
    criteria = [row.criterion for row in counts]
    opened = holdout_openings(criteria=criteria, chat_set=choice.chat_set, policy=policy) if opens else []
    blocking = [row for row in counts if row.blocks]
    sight = gate_sight(
        min((row.n for row in blocking), default=0),
        criteria=len(blocking),
        policy=policy,
    )
    return Outlook(counts, sight, opens, next(iter(opened), None))


def regression_start(wish: Wish, *, by: User) -> Started:
    """Start the test on the workers, or find the one that the same form has started.

    Raises RegressionRefused, RunRefused, InputProblem; nothing is started then.
    """
    try:
        return _start(wish, by)
    except IntegrityError:
        # The second of two presses in the same moment: the first one's test is stored by now.
        if (earlier := _started(wish)) is None:
            raise
        return earlier


def tested_keys(wish: Wish) -> tuple[str, ...]:
    """The criteria that the test asks. Raises RegressionRefused."""
    if wish.candidate is not None:
        return tested_criteria(criterion=wish.candidate.criterion, choice=wish.choice)
    return judged_criteria(choice=wish.choice, baseline=wish.baseline)


@transaction.atomic
def _start(wish: Wish, by: User) -> Started:
    if earlier := _started(wish):
        return earlier
    if wish.candidate is not None:
        return Started(prompt_test_start(candidate=wish.candidate, choice=wish.choice, by=by))
    if wish.judge is None:
        raise RegressionRefused("nothing is named to test: neither a version nor a judge")
    return Started(
        judge_test_start(
            judge=wish.judge, choice=wish.choice, baseline=wish.baseline, prompts=wish.prompts, by=by
        )
    )


def _started(wish: Wish) -> Started | None:
    mark = wish.choice.source_hash
    earlier = RegressionTest.objects.filter(candidate_run__source_hash=mark).first() if mark else None
    return Started(earlier, again=True) if earlier else None
