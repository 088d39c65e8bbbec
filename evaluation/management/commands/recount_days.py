"""Recounts verdicts by day, or checks the stored counts."""

from typing import Any

from django.core.management.base import CommandParser

from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.problems import InputProblem
from evaluation.day_counts.queries import counted_runs, is_exact
from evaluation.day_counts.services import days_recount


class Command(WorkbenchCommand):
    help = "Recount the verdicts of the monitoring page, after a criterion's tier or dimension changed."
    on_stop = "runs counted so far stay counted"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--run", type=int, metavar="ID", help="only this run")
        parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if counts differ")

    def handle(self, *args: Any, **options: Any) -> None:
        runs = counted_runs()
        if options["run"] is not None:
            runs = runs.filter(pk=options["run"])
            if not runs.exists():
                raise InputProblem(f"--run: no run {options['run']} with verdicts that are counted by day")
        ids = list(runs.values_list("pk", flat=True))
        different = [run_id for run_id in ids if not is_exact(run_id)]
        for run_id in [] if options["check"] else different:
            days_recount(run_id)
        verb = "differ" if options["check"] else "mended"
        document = {"runs": len(ids), verb: different}
        self.answer(document, f"runs: {len(ids):,}, {verb}: {', '.join(map(str, different)) or 'none'}")
        if options["check"] and different:
            raise CommandExit(ExitCode.NO, "Counts differ from verdicts. Run recount_days to mend them.")
