"""Advance regression tests: decide when the runs are over, or start the confirming run."""

import logging

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from alignment.comparison.core.codes import Clusters
from alignment.models.regressions import RegressionTest
from alignment.regression.core import (
    Decision,
    Evidence,
    Gate,
    confirm,
    count_evidence,
    decide,
    flip_share,
    regression_body,
)
from alignment.regression.queries.paired_verdicts import judge_codes, paired_answers
from alignment.regression.queries.tests import evidence_of, gate_policy
from alignment.reports.queries.reports import SEED
from alignment.statistics.estimates import Estimate
from common.problems import InputProblem
from evaluation.models.runs import ON_WORKER, Run
from evaluation.runs.services.control import CANCELLABLE, run_cancel, run_enqueue_on_commit
from evaluation.runs.services.runs import run_repeat

log = logging.getLogger(__name__)

OWN = (Run.Purpose.REGRESSION, Run.Purpose.CONFIRM, Run.Purpose.NOISE)
OPEN = (RegressionTest.State.RUNNING, RegressionTest.State.CONFIRMING)


def regressions_sweep() -> None:
    """Take every regression test whose runs are over a step further."""
    for test_id in regressions_waiting():
        try:
            regression_advance(test_id)
        except Exception:
            # One test that cannot be decided must not hold up the others.
            log.exception("regression test %s could not be decided", test_id)


@transaction.atomic
def regression_advance(test_id: int) -> RegressionTest:
    """Advance one test by a step; no change while a run is in progress or after the end.

    A FAIL needs a confirming run of the candidate, which is planned here and processed like the first one. A
    cancelled run cancels the test and its other own runs.
    """
    test = (
        RegressionTest.objects.select_for_update(of=("self",))
        .select_related("policy", "baseline_run__chat_set", "candidate_run__chat_set", "candidate_run__judge")
        .get(pk=test_id)
    )
    if not test.is_open:
        return test
    runs = runs_of(test)
    if cancelled := [run for run in runs if run.state == Run.State.CANCELLED]:
        return _cancel(test, cancelled[0])
    if all(run.finished_at for run in runs):
        _decide(test)
    return test


def runs_of(test: RegressionTest) -> list[Run]:
    """Return the existing runs of the test: champion, candidate, confirming run, noise run."""
    runs = (test.baseline_run, test.candidate_run, test.confirm_run, test.noise_run)
    return [run for run in runs if run is not None]


def own_runs(test: RegressionTest) -> list[Run]:
    """Return the runs that were planned for the test, without a finished run used as baseline."""
    return [run for run in runs_of(test) if run.purpose in OWN]


def regressions_waiting() -> list[int]:
    """Return ids of open tests whose first two runs are over, or with a cancelled run."""
    over = Q(baseline_run__finished_at__isnull=False, candidate_run__finished_at__isnull=False)
    names = ("baseline_run", "candidate_run", "confirm_run", "noise_run")
    cancelled = Q(*[(f"{name}__state", Run.State.CANCELLED) for name in names], _connector=Q.OR)
    return list(RegressionTest.objects.filter(over | cancelled, state__in=OPEN).values_list("pk", flat=True))


def _cancel(test: RegressionTest, cancelled: Run) -> RegressionTest:
    """Cancel the test and its other runs because one run was cancelled."""
    for run in own_runs(test):
        if run.state in CANCELLABLE:
            run_cancel(run=run, by=None, why=f"cancelled with run {cancelled.pk} of the same test")
    return _give_up(test, f"run {cancelled.pk} was {cancelled.error}")


def _decide(test: RegressionTest) -> None:
    policy = gate_policy(test.policy)
    answers = paired_answers(test, candidate=test.candidate_run)
    evidence = count_evidence(answers.criteria)
    decision = decide(evidence, policy=policy)
    if decision.gate is Gate.FAIL and policy.confirm:
        if test.confirm_run is None:
            try:
                test.confirm_run = _second_run(test.candidate_run)
            except InputProblem as problem:
                _give_up(test, f"the second run of the candidate cannot be planned: {problem}")
                return
            test.state = RegressionTest.State.CONFIRMING
            test.save(update_fields=["confirm_run", "state"])
            return
        second = decide(evidence_of(test, candidate=test.confirm_run), policy=policy)
        decision = confirm(decision, second)
    _settle(test, evidence, decision, answers.clusters)


def _second_run(first: Run) -> Run:
    """Plan a second run of the candidate, on workers if the first run was."""
    on_worker = bool(first.options.get(ON_WORKER))
    second = run_repeat(
        first,
        purpose=Run.Purpose.CONFIRM,
        budget_usd=first.budget_usd,
        on_worker=on_worker,
        by=first.started_by,
    )
    if on_worker:
        run_enqueue_on_commit(second)
    return second


def _settle(test: RegressionTest, evidence: Evidence, decision: Decision, clusters: Clusters) -> None:
    test.result = decision.gate.value
    test.reasons = list(decision.reasons)
    test.body = regression_body(evidence, decision, seed=SEED, noise=_noise(test, clusters))
    _close(test, RegressionTest.State.DONE)


def _give_up(test: RegressionTest, why: str) -> RegressionTest:
    test.reasons = [why]
    return _close(test, RegressionTest.State.CANCELLED)


def _close(test: RegressionTest, state: RegressionTest.State) -> RegressionTest:
    test.state = state
    test.finished_at = timezone.now()
    test.save(update_fields=["state", "result", "reasons", "body", "finished_at"])
    return test


def _noise(test: RegressionTest, clusters: Clusters) -> dict[str, Estimate]:
    """Return the noise by criterion, from a repeated run of the champion or the candidate."""
    if test.noise_run is not None:
        pair = test.baseline_run, test.noise_run
    elif test.confirm_run is not None:
        pair = test.candidate_run, test.confirm_run
    else:
        return {}
    first, second = (judge_codes(run) for run in pair)
    return {key: flip_share(codes, second[key], clusters) for key, codes in first.items()}
