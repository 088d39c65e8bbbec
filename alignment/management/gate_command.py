"""Base of `regress` and `gate`: prints the result, writes files for a pull request, sets the exit code."""

from argparse import ArgumentError, ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from alignment.models.regressions import RegressionTest
from alignment.regression.core import junit_problem, junit_xml, markdown_problem, markdown_summary
from alignment.regression.queries.candidate_tests import release_answer
from alignment.regression.queries.holdout_access import holdout_warning
from alignment.regression.queries.tests import regression_answer, regression_text, regression_title
from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.problems import InputProblem

EXITS = {"pass": ExitCode.DONE, "fail": ExitCode.NO, "inconclusive": ExitCode.INCONCLUSIVE}
UNFINISHED = "the command did not finish"


class GateCommand(WorkbenchCommand):
    """A command that exits with the gate's result: 0 pass, 1 fail, 3 inconclusive.

    The files have no result of an earlier command: at the start each gets an error, which the result or the
    reason for its absence replaces.
    """

    decided = False
    argv: Sequence[str] = ()

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run as every command; a usage error finds the files among the arguments."""
        self.argv = argv[2:]
        super().run_from_argv(argv)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Leave a usage error in the files, too."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        refuse = parser.error

        def refuse_in_files(message: str) -> None:
            with suppress(InputProblem):
                _write_problem(_files(self.argv), message, ExitCode.WRONG_INPUT)
            refuse(message)

        parser.error = refuse_in_files  # type: ignore[method-assign]  # as in the base class
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--junit", type=Path, metavar="FILE", help="write the result as a JUnit file")
        add("--markdown", type=Path, metavar="FILE", help="write a summary in Markdown")
        add(
            "--junit-inconclusive",
            choices=["failure", "skipped"],
            default="failure",
            help="how the JUnit file reports an inconclusive result; the exit code stays 3",
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; leave the reason in the files if there is no result."""
        try:
            _write_problem(options, UNFINISHED, ExitCode.OUR_FAULT)
        except InputProblem as problem:
            raise CommandExit(ExitCode.WRONG_INPUT, str(problem)) from None
        try:
            return super().execute(*args, **options)
        except CommandExit as ended:
            if not self.decided:
                # A file that has become unwritable keeps the error of the start.
                with suppress(InputProblem):
                    _write_problem(options, str(ended), ExitCode(ended.returncode))
            raise

    def warn(self, test: RegressionTest) -> None:
        """Warn on stderr if the test's holdout has been used often."""
        if warning := holdout_warning(test):
            self.note(f"warning: {warning}")

    def end_with(self, test: RegressionTest, options: dict[str, Any]) -> None:
        """Print the result of a finished test, write the requested files, and exit with its code.

        Raises InputProblem for a cancelled test, or if a file cannot be written.
        """
        if test.state == RegressionTest.State.CANCELLED:
            raise InputProblem(": ".join([f"regression test {test.pk} was cancelled", *test.reasons]))
        answer, title = regression_answer(test) | release_answer(test), regression_title(test)
        junit = junit_xml(answer, title=title, inconclusive=options["junit_inconclusive"])
        _write(options["junit"], junit)
        _write(options["markdown"], markdown_summary(answer, title=title))
        self.decided = True
        self.answer(answer, "\n".join([regression_text(test), *_release_lines(answer)]))
        raise CommandExit(EXITS[test.result])


def _release_lines(answer: dict[str, Any]) -> list[str]:
    """Return the candidate's other tests and the need for an override, for the terminal."""
    others = [row for row in answer["tests"] if row["test"] != answer["test"]]
    lines = [
        f"test {row['test']} on {row['set']}, {row['split'] or 'all splits'}: {row['gate'] or row['state']}"
        f" under {row['policy']}{'' if row['policy_in_force'] else ' (not in force)'}"
        f"{'' if row['counts'] or not row['gate'] else ', replaced by a newer test'}"
        for row in others
    ]
    if against := answer["needs_override"]:
        lines.append(f"a release needs an override: {'; '.join(against)}")
    return lines


def _files(argv: Sequence[str]) -> dict[str, Any]:
    """The files named by arguments of which others are wrong; none if these are wrong themselves."""
    parser = ArgumentParser(add_help=False, exit_on_error=False)
    for name in ("--junit", "--markdown"):
        parser.add_argument(name, type=Path)
    with suppress(ArgumentError):
        return vars(parser.parse_known_args(argv)[0])
    return {"junit": None, "markdown": None}


def _write_problem(options: dict[str, Any], message: str, code: ExitCode) -> None:
    """Write into both files that there is no result. Raises InputProblem if one cannot be written."""
    title = f"{options['criterion']} on {options['set']}" if "criterion" in options else "regression test"
    kind = "undecided" if code is ExitCode.INCONCLUSIVE else code.name.lower()
    _write(options["junit"], junit_problem(message, title=title, kind=kind))
    _write(options["markdown"], markdown_problem(message, title=title))


def _write(path: Path | None, text: str) -> None:
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputProblem(f"{path} cannot be written: {error.strerror}") from None
