"""Turns verdicts on chats of experiments into metric rows, and these into stored sums."""

import logging
from collections.abc import Iterator
from time import monotonic

from django.db import transaction
from django.utils import timezone

from alignment.experiments.core.unit_sums import ChatResult, Sums, UnitSums, unit_sums
from alignment.experiments.queries.counting import (
    AT_ONCE,
    ExperimentChats,
    experiment_chats,
    experiments_of,
    experiments_with_deleted_runs,
    metric_rows,
    new_runs,
    pending_runs,
    results,
)
from alignment.models.experiments import (
    Experiment,
    ExperimentDay,
    ExperimentMetric,
    ExperimentRun,
    ExperimentVariant,
)
from common.jsonl import in_batches
from evaluation.models.runs import Run, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows
from evaluation.runs.worker.leases import LeaseLost, lease_beat

log = logging.getLogger(__name__)

COUNT = "alignment.tasks.count_experiment"
# Runs looked at in one sweep, and seconds of work before other tasks have their turn.
RUNS_A_SWEEP = 200
SLICE_SECONDS = 30.0
ROWS_A_BEAT = 200_000
_State = Experiment.State


class _Experiments(LeasedRows[Experiment]):
    """One worker at a time counts an experiment."""

    model = Experiment
    task = COUNT
    open_state = _State.DUE
    working_state = _State.WORKING
    reopen = {"rung_at": None}

    def fail(self, row: Experiment) -> None:
        """Never give up for the workers' faults: the next sweep enqueues it."""
        row.tries, row.rung_at = 0, None
        row.save(update_fields=["tries", "rung_at"])
        log.error("the workers that counted experiment %s died several times", row.pk)

    def log_death(self, row: Experiment) -> None:
        log.warning("experiment %s: its worker died, another one goes on", row.pk)


EXPERIMENTS = _Experiments()


def experiments_sweep() -> None:
    """Look at the runs that ended, and enqueue the experiments that they, or new settings, made due."""
    for run in new_runs()[:RUNS_A_SWEEP]:
        run_note(run)
    for pk in experiments_with_deleted_runs():
        experiment_due(pk)
    EXPERIMENTS.sweep()


@transaction.atomic
def run_note(run: Run) -> None:
    """Note the experiments of a finished run; each is due. New ones are created."""
    ended_at = run.finished_at or run.created_at
    keys = experiments_of(run.pk)
    for key in keys:
        experiment, _ = Experiment.objects.get_or_create(key=key)
        ExperimentRun.objects.update_or_create(
            run=run, experiment=experiment, defaults={"ended_at": ended_at, "added": False}
        )
        experiment_due(experiment.pk)
    if not keys:
        ExperimentRun.objects.update_or_create(
            run=run, experiment=None, defaults={"ended_at": ended_at, "added": True}
        )


def experiment_due(pk: int) -> None:
    """Mark an experiment as due, unless a worker has it: that one looks again at its end."""
    Experiment.objects.filter(pk=pk, state=_State.IDLE).update(state=_State.DUE, rung_at=None)


def count_work(experiment_id: int) -> None:
    """Add the verdicts of new runs and count the experiment; do nothing if another worker does."""
    with EXPERIMENTS.work(experiment_id) as (row, lease):
        if row is None:
            return
        try:
            complete = _add_runs(row, lease)
            if complete:
                _count(row, lease)
        except LeaseLost:
            log.warning("experiment %s: another worker took over", experiment_id)
            return
        state = _State.IDLE if complete else _State.DUE
        EXPERIMENTS.owned(experiment_id, lease).update(state=state, lease=None, tries=0, rung_at=None)
    # NB: after the state: a run or settings that came meanwhile relied on this worker to look again.
    if pending_runs(experiment_id).exists() or _is_outdated(experiment_id):
        experiment_due(experiment_id)
        EXPERIMENTS.enqueue(experiment_id)


def _is_outdated(experiment_id: int) -> bool:
    """Whether the settings changed since the count began."""
    row = Experiment.objects.get(pk=experiment_id)
    return bool(row.updated_at and row.counted_at and row.updated_at > row.counted_at)


def _add_runs(row: Experiment, lease: WorkerLease) -> bool:
    """Add the verdicts of new runs, each in a transaction; whether all are added within the time slice."""
    end = monotonic() + SLICE_SECONDS
    for pending in pending_runs(row.pk):
        if monotonic() > end:
            return False
        lease_beat(lease.pk)
        _add_run(row, lease, pending)
    return True


@transaction.atomic
def _add_run(row: Experiment, lease: WorkerLease, pending: ExperimentRun) -> None:
    _own(row, lease)
    for batch in in_batches(metric_rows(row, pending.run), AT_ONCE):
        ExperimentMetric.objects.bulk_create(batch, ignore_conflicts=True)
    ExperimentRun.objects.filter(pk=pending.pk, ended_at=pending.ended_at).update(added=True)


def _own(row: Experiment, lease: WorkerLease) -> Experiment:
    """Lock the experiment: rows of one appear in the order of their ids. Raises LeaseLost."""
    owned = EXPERIMENTS.owned(row.pk, lease).select_for_update(of=("self",)).first()
    if owned is None:
        raise LeaseLost(f"experiment {row.pk}")
    return owned


def _count(row: Experiment, lease: WorkerLease) -> None:
    """Replace the stored sums."""
    lease_beat(lease.pk)
    began = timezone.now()
    row = Experiment.objects.get(pk=row.pk)
    row.sampled = ExperimentMetric.objects.filter(experiment=row, sampled=True).exists()
    chats = experiment_chats(row)
    sums = unit_sums(_beating(results(row), lease), mixed=chats.mixed)
    with transaction.atomic():
        _own(row, lease)
        _store(row, chats, sums)
        Experiment.objects.filter(pk=row.pk).update(
            sampled=row.sampled,
            counted_runs=row.runs.count(),
            mixed_units=len(chats.mixed),
            without_unit=chats.without_unit,
            without_variant=chats.without_variant,
            counted_at=began,
        )


def _beating(rows: Iterator[ChatResult], lease: WorkerLease) -> Iterator[ChatResult]:
    """Yield the rows; the lease is renewed meanwhile."""
    for number, row in enumerate(rows):
        if number % ROWS_A_BEAT == 0:
            lease_beat(lease.pk)
        yield row


def _store(row: Experiment, chats: ExperimentChats, sums: UnitSums) -> None:
    ExperimentDay.objects.filter(experiment=row).delete()
    ExperimentVariant.objects.filter(experiment=row).delete()
    names = Sums.__slots__
    ExperimentDay.objects.bulk_create(
        (
            ExperimentDay(
                experiment=row,
                criterion_id=place.criterion,
                variant=place.variant,
                day=place.day,
                **{name: getattr(one, name) for name in names},
            )
            for place, one in sums.days.items()
        ),
        batch_size=AT_ONCE,
    )
    ExperimentVariant.objects.bulk_create(
        ExperimentVariant(
            experiment=row,
            variant=one.variant,
            chats=one.chats,
            units=one.units,
            judged_units=sums.units[one.variant],
            first_day=one.first,
            last_day=one.last,
        )
        for one in chats.variants
    )
