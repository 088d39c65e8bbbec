"""Starts and ends regression tests: champion and candidate over the same labelled chats."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from alignment.models.regressions import HoldoutOpening, Policy, RegressionTest
from alignment.regression.worker import OPEN, own_runs
from common.problems import InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeChoice
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ON_WORKER, Run
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.services.control import CANCELLABLE, run_cancel, run_enqueue_on_commit, run_launch
from evaluation.runs.services.runs import (
    RunChoice,
    asked_together,
    chosen_criteria,
    chosen_members,
    run_repeat,
    run_start,
)
from labeling.consensus.services import criteria_lock
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion


@dataclass(frozen=True, slots=True)
class RegressionChoice:
    """On what a candidate is tested: a labelled set, one of its splits ('' = all), the champion's recipe.

    `noise` has the champion asked once more, so that its own flips are known. `budget_usd` caps each run.
    `on_worker`: the workers carry the runs out, else whoever starts the test does. `profile` is where the
    champion's recipe comes from, `candidate_profile` the candidate's, where a whole judge is tested. No two
    tests share a `source_hash`.
    """

    chat_set: ChatSet
    split: str
    judge: JudgeChoice
    policy: Policy
    noise: bool = False
    budget_usd: Decimal | None = None
    on_worker: bool = True
    profile: JudgeProfile | None = None
    candidate_profile: JudgeProfile | None = None
    source_hash: str = ""


class RegressionRefused(InputProblem):
    """A test that makes no sense; the message says why."""


@transaction.atomic
def prompt_test_start(
    *, candidate: PromptVersion, choice: RegressionChoice, by: User | None = None
) -> RegressionTest:
    """Test a prompt version against its criterion's champion; only the criteria asked with it are asked.

    Raises RegressionRefused; RunRefused and InputProblem as run_start does. A holdout is opened, and that is
    recorded.
    """
    criterion = candidate.criterion
    if champions_ensure(criteria=[criterion])[criterion.pk].pk == candidate.pk:
        raise RegressionRefused(nothing_new(candidate))
    keys = tested_criteria(criterion=criterion, choice=choice)
    baseline = _run(choice, keys, by, judge=choice.judge)
    tested = _run(choice, keys, by, judge=choice.judge, prompts=[candidate], candidate=True)
    if tested.judge_id == baseline.judge_id:
        raise RegressionRefused(nothing_new(candidate))
    return _test(
        choice, RegressionTest.Kind.PROMPT, baseline=baseline, tested=tested, by=by, candidate=candidate
    )


def prompt_test_take_up(*, candidate: PromptVersion, choice: RegressionChoice) -> RegressionTest:
    """Go on with the same test where a process that ended has left it open, else start one.

    Only tests that no worker carries out are taken up. Raises as prompt_test_start does.
    """
    with transaction.atomic():
        test = prompt_test_start(candidate=candidate, choice=choice)
        if (left := _left_open(test)) is None:
            return test
        transaction.set_rollback(True)
    return left


@transaction.atomic
def judge_test_start(
    *,
    judge: JudgeChoice,
    choice: RegressionChoice,
    baseline: Run | None = None,
    prompts: Collection[PromptVersion] = (),
    by: User | None = None,
) -> RegressionTest:
    """Test another recipe, other prompts or today's knowledge against the champion's, on every criterion.

    `baseline` names a finished run in place of the champion's recipe as it would be asked today: after a
    change of the knowledge only that knows the older one.

    Raises RegressionRefused when nothing differs, or for a baseline over other chats; else as above.
    """
    if baseline is None:
        keys = judged_criteria(choice=choice)
        first = _run(choice, keys, by, judge=choice.judge)
    else:
        keys = judged_criteria(choice=choice, baseline=baseline)
        first = baseline
    tested = _run(choice, keys, by, judge=judge, prompts=prompts, candidate=True)
    if tested.judge_id == first.judge_id:
        raise RegressionRefused(nothing_new(None))
    return _test(choice, RegressionTest.Kind.JUDGE, baseline=first, tested=tested, by=by)


@transaction.atomic
def regression_cancel(*, test: RegressionTest, by: User | None) -> None:
    """End a test and the runs planned for it for good; what they answered stays.

    Raises RegressionRefused once the test is over.
    """
    test = RegressionTest.objects.select_for_update(of=("self",)).get(pk=test.pk)
    if not test.is_open:
        raise RegressionRefused(f"regression test {test.pk} is over: it cannot be cancelled")
    for run in own_runs(test):
        if run.state in CANCELLABLE:
            run_cancel(run=run, by=by)
    test.state = RegressionTest.State.CANCELLED
    test.save(update_fields=["state"])


def nothing_new(candidate: PromptVersion | None) -> str:
    """Why a candidate that asks what its baseline asks is not tested."""
    if candidate is None:
        return "the candidate is the same judge as its baseline: there is nothing to test"
    criterion = candidate.criterion
    champion = champions(criteria=[criterion]).get(criterion.pk)
    if champion is not None and champion.pk == candidate.pk:
        return f"version {candidate.number} of {criterion.key} is the champion already"
    return f"version {candidate.number} of {criterion.key} says the same as its champion"


def tested_criteria(*, criterion: Criterion, choice: RegressionChoice) -> tuple[str, ...]:
    """The keys of the criteria that are asked in one call with this one: a change of one touches them all.

    Raises RunRefused for a criterion that the set's rubric does not ask.
    """
    return asked_together(
        chat_set=choice.chat_set, criterion=criterion, judge=choice.judge, endpoint=current_endpoint()
    )


def judged_criteria(*, choice: RegressionChoice, baseline: Run | None = None) -> tuple[str, ...]:
    """The keys of the criteria of a whole-judge test: the rubric's, or those that the baseline was asked.

    Raises RegressionRefused for a baseline that is not finished or covers other chats than the test would.
    """
    if baseline is None:
        return tuple(row.key for row in chosen_criteria(choice.chat_set, ()))
    run = baseline
    if run.finished_at is None or run.state == Run.State.CANCELLED:
        raise RegressionRefused(f"run {run.pk} is not finished: it cannot be a baseline")
    wanted = chosen_members(choice.chat_set, RunChoice(split=choice.split)).values_list("chat_id", flat=True)
    if list(run.run_chats.values_list("chat_id", flat=True)) != list(wanted):
        raise RegressionRefused(f"run {run.pk} covers other chats than the test would")
    asked = set(run.judge.prompts.values_list("criterion__key", flat=True))
    keys = tuple(row.key for row in chosen_criteria(choice.chat_set, ()) if row.key in asked)
    if not keys:
        raise RegressionRefused(f"run {run.pk} was asked no criterion that is active today")
    return keys


def _left_open(test: RegressionTest) -> RegressionTest | None:
    """The newest open test by the same judges on the same chats that a command has started."""
    rows = RegressionTest.objects.filter(
        pk__lt=test.pk,
        state__in=OPEN,
        candidate=test.candidate,
        policy=test.policy,
        split=test.split,
        noise_run__isnull=test.noise_run is None,
        baseline_run__judge=test.baseline_run.judge,
        candidate_run__judge=test.candidate_run.judge,
        candidate_run__chat_set=test.chat_set,
    ).select_related("policy", "baseline_run", "candidate_run", "confirm_run", "noise_run")
    chats = list(test.candidate_run.run_chats.values_list("chat_id", flat=True))
    for row in rows:
        covered = row.candidate_run.run_chats.values_list("chat_id", flat=True)
        if not row.candidate_run.options.get(ON_WORKER) and list(covered) == chats:
            return row
    return None


def _run(
    choice: RegressionChoice,
    keys: Sequence[str],
    by: User | None,
    *,
    judge: JudgeChoice,
    prompts: Collection[PromptVersion] = (),
    candidate: bool = False,
) -> Run:
    """Plan a run of a test. What was asked before, by whatever run, is not asked again."""
    start = run_launch if choice.on_worker else run_start
    planned = start(
        chat_set=choice.chat_set,
        judge=judge,
        run=RunChoice(
            criteria=keys,
            split=choice.split,
            purpose=Run.Purpose.REGRESSION,
            budget_usd=choice.budget_usd,
            # A test has one candidate run: its mark is the test's.
            source_hash=choice.source_hash if candidate else "",
        ),
        endpoint=current_endpoint(),
        by=by,
        prompts=prompts,
    )
    profile = (choice.candidate_profile if candidate else None) or choice.profile
    if profile is not None:
        Judge.objects.filter(pk=planned.judge_id, profile=None).update(profile=profile)
    return planned


def _noise_run(choice: RegressionChoice, baseline: Run, by: User | None) -> Run:
    """The baseline's judge once more, under the test's own terms: the baseline may be an old run."""
    noise = run_repeat(
        baseline,
        purpose=Run.Purpose.NOISE,
        budget_usd=choice.budget_usd,
        on_worker=choice.on_worker,
        by=by,
    )
    if choice.on_worker:
        run_enqueue_on_commit(noise)
    return noise


def _hold_criteria(run: Run) -> None:
    """Keep the run's criteria from being redesigned until the test is stored; raises RegressionRefused.

    NB: asked for last, after the planning: raters who submit wait for these locks.
    """
    asked = run.judge.prompts.values_list("criterion_id", flat=True)
    held = Criterion.objects.filter(pk__in=criteria_lock(criterion_ids=list(asked)))
    gone = held.exclude(state=Criterion.State.ACTIVE).values_list("key", flat=True).first()
    if gone is not None:
        raise RegressionRefused(f"{gone} is no active criterion any more")


def _test(
    choice: RegressionChoice,
    kind: RegressionTest.Kind,
    *,
    baseline: Run,
    tested: Run,
    by: User | None,
    candidate: PromptVersion | None = None,
) -> RegressionTest:
    noise = _noise_run(choice, baseline, by) if choice.noise else None
    _hold_criteria(tested)
    test = RegressionTest.objects.create(
        kind=kind,
        chat_set=choice.chat_set,
        split=choice.split,
        policy=choice.policy,
        candidate=candidate,
        profile=choice.profile,
        candidate_profile=choice.candidate_profile,
        baseline_run=baseline,
        candidate_run=tested,
        noise_run=noise,
        created_by=by,
    )
    if choice.chat_set.members.filter(split=Split.HOLDOUT).exists() and test.holdout:
        HoldoutOpening.objects.bulk_create(
            HoldoutOpening(regression=test, chat_set=choice.chat_set, criterion_id=pk, by=by)
            for pk in tested.judge.prompts.values_list("criterion_id", flat=True)
        )
    return test
