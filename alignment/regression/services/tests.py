"""Start and cancel regression tests: champion and candidate over the same labelled chats."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from alignment.models.regressions import HoldoutOpening, Policy, RegressionTest
from alignment.regression.core import RETIRED
from alignment.regression.queries.prompt_errors import prompt_problem
from alignment.regression.services.policies import policy_in_force
from alignment.regression.worker import OPEN, own_runs
from common.problems import InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
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
from labeling.consensus.services.consensus import criteria_lock
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit


@dataclass(frozen=True, slots=True)
class RegressionChoice:
    """Settings of a test.

    chat_set, split : labelled chats; split '' means all. judge : the champion's recipe.
    noise : run the champion a second time to measure its noise. budget_usd : budget of each run.
    on_worker : whether workers process the runs; otherwise the caller does.
    profile, candidate_profile : source of the recipes; the second only for a test of a whole judge.
    source_hash : unique to a test.
    """

    chat_set: ChatSet
    split: str
    judge: JudgeSpec
    policy: Policy
    noise: bool = False
    budget_usd: Decimal | None = None
    on_worker: bool = True
    profile: JudgeProfile | None = None
    candidate_profile: JudgeProfile | None = None
    source_hash: str = ""


class RegressionRefused(InputProblem):
    """The test cannot be started or changed; the message has the reason."""


@transaction.atomic
def prompt_test_start(
    *, candidate: PromptVersion, choice: RegressionChoice, by: User | None = None
) -> RegressionTest:
    """Test a prompt version against its criterion's champion, on the criteria of the same call.

    Records each use of the holdout. Raises RegressionRefused, also for a prompt with errors; RunRefused and
    InputProblem as run_start does.
    """
    criterion = candidate.criterion
    refuse_errors([candidate])
    if champions_ensure(criteria=[criterion], by=by)[criterion.pk].pk == candidate.pk:
        raise RegressionRefused(nothing_new(candidate))
    keys = tested_criteria(criterion=criterion, choice=choice)
    baseline = _run(choice, keys, by, judge=choice.judge)
    tested = _run(choice, keys, by, judge=choice.judge, prompts=[candidate], candidate=True)
    if tested.judge_id == baseline.judge_id:
        raise RegressionRefused(nothing_new(candidate))
    return _test(
        choice, RegressionTest.Kind.PROMPT, baseline=baseline, tested=tested, by=by, candidate=candidate
    )


def prompt_test_continue(
    *, candidate: PromptVersion, choice: RegressionChoice, by: User | None = None
) -> RegressionTest:
    """Continue the same test if an earlier command did not finish it, otherwise start one.

    Tests on workers are not continued here. Raises as prompt_test_start does.
    """
    with transaction.atomic():
        test = prompt_test_start(candidate=candidate, choice=choice, by=by)
        if (same := _same_open_test(test)) is None:
            return test
        transaction.set_rollback(True)
    return same


@transaction.atomic
def judge_test_start(
    *,
    judge: JudgeSpec,
    choice: RegressionChoice,
    baseline: Run | None = None,
    prompts: Collection[PromptVersion] = (),
    by: User | None = None,
) -> RegressionTest:
    """Test another recipe, other prompts or the current knowledge on every criterion.

    baseline : a finished run in place of the champion. After a change of knowledge, only an older run has the
    earlier version.

    Raises RegressionRefused if nothing differs, or for a baseline over other chats; otherwise as above.
    """
    refuse_errors(prompts)
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
    """Cancel a test and its own runs; stored answers are kept.

    Raises RegressionRefused if the test is over.
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
    """Return why a candidate equal to its baseline is not tested."""
    if candidate is None:
        return "candidate and baseline are the same judge: choose another candidate"
    criterion = candidate.criterion
    champion = champions(criteria=[criterion]).get(criterion.pk)
    if champion is not None and champion.pk == candidate.pk:
        return f"version {candidate.number} of {criterion.name} is already the champion"
    return f"version {candidate.number} of {criterion.name} has the same text as its champion"


def refuse_errors(prompts: Iterable[PromptVersion]) -> None:
    """Raise RegressionRefused for a prompt with errors: a test of it would be paid for nothing."""
    if problem := prompt_problem(prompts):
        raise RegressionRefused(f"{problem}. Correct them in a new version")


def tested_criteria(*, criterion: Criterion, choice: RegressionChoice) -> tuple[str, ...]:
    """Return the keys of the criteria in the same call, because a change of one affects them all.

    Raises RunRefused for a criterion that is not in the set's rubric.
    """
    judge = choice.judge
    return asked_together(
        chat_set=choice.chat_set, criterion=criterion, judge=judge, endpoint=judge_endpoint(judge)
    )


def judged_criteria(*, choice: RegressionChoice, baseline: Run | None = None) -> tuple[str, ...]:
    """Return the keys of the criteria of a whole-judge test: the rubric's, or the baseline's.

    Raises RegressionRefused for a baseline that is not finished or has other chats than the test.
    """
    if baseline is None:
        return tuple(row.key for row in chosen_criteria(choice.chat_set, ()))
    run = baseline
    if run.finished_at is None or run.state == Run.State.CANCELLED:
        raise RegressionRefused(f"run {run.pk} is not finished: choose a finished run as baseline")
    members = chosen_members(choice.chat_set, RunChoice(split=choice.split)).values_list("chat_id", flat=True)
    if list(run.run_chats.values_list("chat_id", flat=True)) != list(members):
        raise RegressionRefused(
            f"run {run.pk} has other chats than the test: choose another baseline or split"
        )
    judged = set(run.judge.prompts.values_list("criterion__key", flat=True))
    keys = tuple(row.key for row in chosen_criteria(choice.chat_set, ()) if row.key in judged)
    if not keys:
        raise RegressionRefused(f"run {run.pk} has no active criterion: choose another baseline")
    return keys


def _same_open_test(test: RegressionTest) -> RegressionTest | None:
    """Return the newest open test of a command with the same judges and chats."""
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
        tested = row.candidate_run.run_chats.values_list("chat_id", flat=True)
        if not row.candidate_run.options.get(ON_WORKER) and list(tested) == chats:
            return row
    return None


def _run(
    choice: RegressionChoice,
    keys: Sequence[str],
    by: User | None,
    *,
    judge: JudgeSpec,
    prompts: Collection[PromptVersion] = (),
    candidate: bool = False,
) -> Run:
    """Plan a run of a test. Stored answers of any run are reused."""
    start = run_launch if choice.on_worker else run_start
    planned = start(
        chat_set=choice.chat_set,
        judge=judge,
        run=RunChoice(
            criteria=keys,
            split=choice.split,
            purpose=Run.Purpose.REGRESSION,
            budget_usd=choice.budget_usd,
            # A test has one candidate run, which carries the id of the test.
            source_hash=choice.source_hash if candidate else "",
        ),
        endpoint=judge_endpoint(judge),
        by=by,
        prompts=prompts,
    )
    profile = (choice.candidate_profile if candidate else None) or choice.profile
    if profile is not None:
        Judge.objects.filter(pk=planned.judge_id, profile=None).update(profile=profile)
    return planned


def _noise_run(choice: RegressionChoice, baseline: Run, by: User | None) -> Run:
    """Plan a second run of the baseline's judge with the settings of the test."""
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


def _lock_criteria(run: Run) -> None:
    """Lock the run's criteria against a redesign until the test is stored; raises RegressionRefused.

    NB: called after the planning, because raters who submit wait for these locks.
    """
    ids = run.judge.prompts.values_list("criterion_id", flat=True)
    locked = Criterion.objects.filter(pk__in=criteria_lock(criterion_ids=list(ids)))
    retired = locked.exclude(state=Criterion.State.ACTIVE).first()
    if retired is not None:
        raise RegressionRefused(f"{retired.name} is no longer an active criterion: start the test again")


def _test(
    choice: RegressionChoice,
    kind: RegressionTest.Kind,
    *,
    baseline: Run,
    tested: Run,
    by: User | None,
    candidate: PromptVersion | None = None,
) -> RegressionTest:
    if not RETIRED.isdisjoint(choice.policy.parameters):
        raise RegressionRefused(
            f"the policy {choice.policy} belongs to earlier rules of the gate: choose a later version"
        )
    noise = _noise_run(choice, baseline, by) if choice.noise else None
    _lock_criteria(tested)
    test = RegressionTest.objects.create(
        kind=kind,
        chat_set=choice.chat_set,
        split=choice.split,
        policy=choice.policy if choice.policy.pk else policy_in_force(),
        candidate=candidate,
        profile=choice.profile,
        candidate_profile=choice.candidate_profile,
        baseline_run=baseline,
        candidate_run=tested,
        noise_run=noise,
        created_by=by,
    )
    if choice.chat_set.members.filter(split=Split.HOLDOUT).exists() and test.holdout:
        _open_holdout(test, by)
    return test


def _open_holdout(test: RegressionTest, by: User | None) -> None:
    """Record that the test uses the holdout of its chat set, for each criterion."""
    keys = dict(test.candidate_run.judge.prompts.values_list("criterion_id", "criterion__key"))
    HoldoutOpening.objects.bulk_create(
        HoldoutOpening(regression=test, chat_set=test.chat_set, criterion_id=pk, by=by) for pk in keys
    )
    audit(
        actor=by, verb="holdout opened", obj=test, chat_set=test.chat_set.name, criteria=sorted(keys.values())
    )
