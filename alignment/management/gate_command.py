"""Base of `regress` and `gate`: prints the result, writes files for a pull request, sets the exit code."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from alignment.models.regressions import RegressionTest
from alignment.regression.core import junit_xml, markdown_summary
from alignment.regression.queries.tests import regression_answer, regression_text, regression_title
from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.problems import InputProblem

EXITS = {"pass": ExitCode.DONE, "fail": ExitCode.NO, "inconclusive": ExitCode.INCONCLUSIVE}


class GateCommand(WorkbenchCommand):
    """A command that exits with the gate's result: 0 pass, 1 fail, 3 inconclusive."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write the result as a JUnit file")
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary in Markdown")

    def end_with(self, test: RegressionTest, options: dict[str, Any]) -> None:
        """Print the result of a finished test, write the requested files, and exit with its code.

        Raises InputProblem for a cancelled test, or if a file cannot be written.
        """
        if test.state == RegressionTest.State.CANCELLED:
            raise InputProblem(": ".join([f"regression test {test.pk} was cancelled", *test.reasons]))
        answer, title = regression_answer(test), regression_title(test)
        for path, text in (
            (options["junit"], junit_xml(answer, title=title)),
            (options["markdown"], markdown_summary(answer, title=title)),
        ):
            if path is not None:
                _write(path, text)
        self.answer(answer, regression_text(test))
        raise CommandExit(EXITS[test.result])


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputProblem(f"{path} cannot be written: {error.strerror}") from None
