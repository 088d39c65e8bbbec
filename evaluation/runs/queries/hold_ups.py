"""Why a running run stands still, in a sentence."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from common.disk import database_folder, disk_trouble
from evaluation.core.types import ModelAt
from evaluation.gateway.throttle.waits import endpoint_wait
from evaluation.models.runs import Run
from evaluation.runs.queries.workers import HEARD_WITHIN, judge_workers, no_worker

# A free worker starts at once; planning a big run needs a little longer.
ANSWERED_WITHIN = timedelta(seconds=10)


def hold_up(run: Run, *, beats: Sequence[datetime]) -> str:
    """Return why a running run stands still, the deepest cause only, or ""; at most two queries.

    `beats` are the last heartbeats of the leases on the run.
    """
    if run.state != Run.State.RUNNING:
        return ""
    if trouble := disk_trouble(database_folder()):
        return f"The database cannot be written: {trouble}"
    if beats and max(beats) < timezone.now() - HEARD_WITHIN:
        return no_worker(max(beats))
    if not beats and not just_enqueued(run):
        workers = judge_workers()
        if not workers.alive:
            return no_worker(workers.heard_at)
    return _endpoint_hold_up(run) if run.mode == Run.Mode.LIVE else ""


def just_enqueued(run: Run) -> bool:
    """Return whether a worker was notified so lately that it need not have begun."""
    return run.rung_at is not None and run.rung_at > timezone.now() - ANSWERED_WITHIN


def _endpoint_hold_up(run: Run) -> str:
    config = run.judge.config
    own = str(config.get("endpoint", ""))
    models = {ModelAt(role.get("endpoint", own), role["model"]) for role in config.get("roles", {}).values()}
    if not models and run.judge.model:
        models = {ModelAt(own, run.judge.model)}
    wait = endpoint_wait(models=models, broker_url=settings.CELERY_BROKER_URL)
    if wait is None:
        return ""
    if wait.failing:
        return f"The endpoint does not answer: next try in {wait.seconds} s"
    return f"The endpoint asks to wait: next call in {wait.seconds} s"
