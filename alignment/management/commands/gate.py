"""Prints the result of a regression test, for scripts and CI."""

import time
from typing import Any

from django.core.management.base import CommandParser

from alignment.management.gate_command import GateCommand
from alignment.models.regressions import RegressionTest
from alignment.regression.worker import regression_advance, runs_of
from common.commands import CommandExit, ExitCode
from common.problems import InputProblem
from evaluation.management.options import positive
from evaluation.models.runs import Run, error_in_words

POLL_SECONDS = 2.0


class Command(GateCommand):
    """Print the gate's result: exit 0 pass, 1 fail, 3 inconclusive or not decided yet."""

    help = __doc__
    on_stop = "the test continues"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("test", type=positive, metavar="ID", help="id of a regression test")
        parser.add_argument(
            "--wait", type=positive, metavar="SECONDS", default=0, help="time to wait for a running test"
        )
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        test = self._decided(options["test"], until=time.monotonic() + options["wait"])
        self.warn(test)
        self.end_with(test, options)

    def _decided(self, test_id: int, *, until: float) -> RegressionTest:
        """The finished test. Raises CommandExit (3) if time runs out or a run is paused."""
        while True:
            if not RegressionTest.objects.filter(pk=test_id).exists():
                raise InputProblem(f"there is no regression test {test_id}")
            test = regression_advance(test_id)
            if not test.is_open:
                return test
            paused = [run for run in runs_of(test) if run.state == Run.State.PAUSED]
            if paused or time.monotonic() >= until:
                why = (
                    f"run {paused[0].pk} is paused: {error_in_words(paused[0].error)}"
                    if paused
                    else "its runs continue"
                )
                raise CommandExit(ExitCode.INCONCLUSIVE, f"regression test {test_id} is not decided: {why}")
            time.sleep(POLL_SECONDS)
