"""Celery tasks: an id in, the runner called."""

from celery import shared_task

from evaluation.models.runs import Run
from evaluation.runner.execute import run_execute


@shared_task(name="evaluation.tasks.drain")  # type: ignore[untyped-decorator]  # celery has no types
def drain(run_id: int) -> None:
    """Carry a run on; what is done already is not asked again."""
    run = Run.objects.select_related("judge").get(pk=run_id)
    if run.state == Run.State.RUNNING:
        run_execute(run, on_unit=lambda failed: None)
