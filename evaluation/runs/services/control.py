"""Actions on a run: start it on the workers, pause, resume, cancel."""

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.utils import timezone

from common.problems import InputProblem
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ON_WORKER, Run
from evaluation.runs.queries.verdict_counts import verdicts_counted
from evaluation.runs.services.runs import RunChoice, RunRefused, budget_change, run_start
from evaluation.runs.worker.batch import batches_stop
from evaluation.runs.worker.enqueue import run_enqueue
from evaluation.runs.worker.execute import run_reopen
from evaluation.runs.worker.plan import resume_check
from labeling.models.chats import ChatSet
from labeling.models.people import User

PAUSABLE = (Run.State.RUNNING,)
RESUMABLE = (Run.State.PAUSED, Run.State.DONE_WITH_FAILURES)
CANCELLABLE = (Run.State.RUNNING, Run.State.PAUSED)


@transaction.atomic
def run_launch(
    *,
    chat_set: ChatSet,
    judge: JudgeSpec,
    run: RunChoice,
    endpoint: Endpoint,
    by: User | None,
    prompts: Collection[PromptVersion] = (),
) -> Run:
    """Plan a run and enqueue it once it is stored. `prompts` as for run_start. Raises RunRefused."""
    if endpoint.embedded and judge.grouping == "auto":
        # The embedded model works best with one criterion per call.
        judge = replace(judge, grouping="criterion")
    planned = replace(run, options={**run.options, ON_WORKER: True})
    started = run_start(
        chat_set=chat_set, judge=judge, run=planned, endpoint=endpoint, by=by, prompts=prompts
    )
    run_enqueue_on_commit(started)
    return started


def run_enqueue_on_commit(run: Run) -> None:
    """Enqueue the run when the transaction commits; with the broker down the next sweep does it."""
    transaction.on_commit(partial(run_enqueue, run.pk))


@transaction.atomic
def run_pause(*, run: Run, by: User | None) -> Run:
    """Start no further call; pending ones are answered and stored. Raises RunRefused.

    The batches of a run through the Batch API are cancelled shortly afterwards.
    """
    locked = _locked(run, "paused", PAUSABLE)
    _set(locked, Run.State.PAUSED, error=f"paused by {_who(by)}")
    return locked


@transaction.atomic
def run_resume(*, run: Run, by: User | None, budget_usd: Decimal | None = None) -> Run:
    """Return a paused or failed run to the workers, with its failed units and an optional new budget.

    Raises RunRefused, also where the prompts' fixed texts or the endpoint changed, and InputProblem for a
    budget that cannot be kept.
    """
    locked = _locked(run, "resumed", RESUMABLE)
    try:
        resume_check(locked)
    except InputProblem as problem:
        raise RunRefused(str(problem)) from problem
    if budget_usd is not None:
        budget_change(locked, budget_usd)
    resumed = run_reopen(locked, on_worker=True)
    run_enqueue_on_commit(resumed)
    return resumed


@transaction.atomic
def run_cancel(*, run: Run, by: User | None, why: str = "") -> Run:
    """End a run permanently; its verdicts stay. `why` replaces the user's name. Raises RunRefused."""
    locked = _locked(run, "cancelled", CANCELLABLE)
    locked.finished_at = timezone.now()
    locked.verdict_counts = verdicts_counted([locked.pk])[locked.pk]
    _set(locked, Run.State.CANCELLED, error=why or f"cancelled by {_who(by)}")
    return locked


def _locked(run: Run, what: str, states: Collection[Run.State]) -> Run:
    """Return the current run, locked; raises RunRefused unless it is in one of these states."""
    locked = Run.objects.select_for_update(of=("self",)).select_related("judge", "chat_set").get(pk=run.pk)
    if locked.purpose == Run.Purpose.IMPORT:
        raise RunRefused(f"run {run.pk} was imported: it cannot be {what}")
    if locked.state not in states:
        state = locked.get_state_display().lower()
        raise RunRefused(f"run {run.pk} is {state}: it cannot be {what}")
    return locked


def _set(run: Run, state: Run.State, *, error: str) -> None:
    run.state, run.error = state, error
    run.save(update_fields=["state", "error", "finished_at", "verdict_counts"])
    batches_stop(run)


def _who(by: User | None) -> str:
    return by.get_username() if by else "the command line"
