"""Train the bag-of-words baselines that a page or the API waits for."""

import logging

from alignment.baselines.queries.baselines import answers_document
from alignment.comparison.queries.cached_documents import documents_stored
from alignment.comparison.queries.scope import scope_of_part
from alignment.models.baselines import BaselineTraining
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost, lease_beat

log = logging.getLogger(__name__)

TRAIN = "alignment.tasks.train"


class _Trainings(LeasedRows[BaselineTraining]):
    model = BaselineTraining
    task = TRAIN
    open_state = BaselineTraining.State.OPEN
    working_state = BaselineTraining.State.WORKING
    related = ("run__chat_set",)
    start = {"done": 0}
    # The dead worker consumed the task, so the row needs a new one at once.
    reopen = {"rung_at": None}

    def fail(self, row: BaselineTraining) -> None:
        row.state = BaselineTraining.State.FAILED
        row.save(update_fields=["state"])
        log.error("the baselines of run %s could not be trained %s times", row.run_id, MOST_TRIES)

    def log_death(self, row: BaselineTraining) -> None:
        log.warning("the baselines of run %s are trained again: their worker died", row.run_id)


TRAININGS = _Trainings()


def training_work(training_id: int) -> None:
    """Train one baseline and store its answers; do nothing unless it is open.

    The worker logs what is raised. A training is tried three times.
    """
    with TRAININGS.work(training_id) as (row, lease):
        if row is not None:
            _train(row, lease)


def trainings_waiting() -> list[int]:
    """Reopen the trainings of dead workers, and return the open ones whose task was not enqueued lately."""
    return TRAININGS.waiting()


def trainings_sweep() -> None:
    """Enqueue the trainings that wait."""
    TRAININGS.sweep()


def _train(row: BaselineTraining, lease: WorkerLease) -> None:
    def beat(done: int, total: int) -> None:
        lease_beat(lease.pk)
        if not TRAININGS.owned(row.pk, lease).update(done=done, total=total):
            raise LeaseLost  # cancelled, or taken over

    try:
        with documents_stored():
            answers_document(scope_of_part(row.run, row.part), beat=beat)
    except LeaseLost:
        log.warning("baselines of run %s: cancelled, or another worker took over", row.run_id)
    else:
        BaselineTraining.objects.filter(pk=row.pk).delete()
