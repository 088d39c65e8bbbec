"""Pauses, resumes or cancels a run of the workers."""

from argparse import ArgumentParser
from typing import Any

from common.commands import WorkbenchCommand
from common.problems import InputProblem
from evaluation.management.options import dollars
from evaluation.models.runs import Run
from evaluation.runs.queries.progress import progress_json, run_progress
from evaluation.runs.services.control import run_cancel, run_pause, run_resume

ACTIONS = {"pause": run_pause, "resume": run_resume, "cancel": run_cancel}


class Command(WorkbenchCommand):
    """Pause, resume or cancel a run."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="ID", help="the run's number")
        parser.add_argument("action", choices=ACTIONS, help="cancel is permanent")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="with resume: the run's new budget")

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.filter(pk=options["id"]).first()
        if run is None:
            raise InputProblem(f"there is no run {options['id']}")
        more: dict[str, Any] = {}
        if options["budget"] is not None:
            if options["action"] != "resume":
                raise InputProblem("--budget is for resume only")
            more = {"budget_usd": options["budget"]}
        run = ACTIONS[options["action"]](run=run, by=None, **more)
        run.refresh_from_db()
        if run.state == Run.State.RUNNING and run.rung_at is None:
            self.note("the broker does not answer: the run is enqueued as soon as it does")
        progress = run_progress(run)
        counts = f"{progress.done:,} of {progress.total:,} units done, {progress.failed:,} failed"
        self.answer(progress_json(progress), f"run {run.pk} {progress.state_label.lower()}: {counts}")
