"""Prints the agreement of a judge with human labels."""

from argparse import ArgumentParser
from typing import Any

from alignment.comparison.queries.answers import UnknownRater
from alignment.comparison.queries.requested_scope import valid_ground_truth
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from alignment.reports.worker import report_store
from common.commands import WorkbenchCommand
from common.problems import InputProblem
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet, Split


class Command(WorkbenchCommand):
    """Print the alignment report of a run, or with --set the report on human labels only."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--run", type=int, metavar="ID", help="report on this run")
        what.add_argument("--set", metavar="NAME", help="report on the raters of this chat set alone")
        parser.add_argument(
            "--against",
            default="consensus",
            metavar="consensus|each-rater|rater:NAME",
            help="what the judge is compared with",
        )
        parser.add_argument(
            "--split", choices=Split.values, default="", help="only chats of this split; default: all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not valid_ground_truth(options["against"]):
            raise InputProblem(
                f"--against: {options['against']!r} is not consensus, each-rater or rater:NAME"
            )
        try:
            scope = self._scope(options)
            report_store(scope, share=True)
            report = alignment_report(scope)
        except UnknownRater as error:
            raise InputProblem(f"--against: {error}") from error
        self.answer(report, report_table(report))

    def _scope(self, options: dict[str, Any]) -> Scope:
        if options["run"] is not None:
            run = Run.objects.select_related("judge", "chat_set").filter(pk=options["run"]).first()
            if run is None:
                raise InputProblem(f"--run: there is no run {options['run']}")
            return Scope(run.chat_set, run, options["split"], options["against"])
        chat_set = ChatSet.objects.filter(name=options["set"]).first()
        if chat_set is None:
            raise InputProblem(f"--set: there is no chat set {options['set']!r}")
        return Scope(chat_set, None, options["split"], options["against"])
