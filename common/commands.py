"""Base class of all commands: --json, one-line errors, documented exit codes."""

import io
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NoReturn

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, CommandParser, handle_default_options
from django.db import OperationalError, ProgrammingError, connections

from common.jsonl import ImportResult
from common.problems import InputProblem, OutsideFailure


class ExitCode(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    NO = 1
    WRONG_INPUT = 2
    INCONCLUSIVE = 3
    OUTSIDE_FAILURE = 4
    OUR_FAULT = 70


class CommandExit(CommandError):
    """Ends a command with this exit code; an empty message prints nothing."""

    def __init__(self, code: ExitCode, message: str = "") -> None:
        super().__init__(message, returncode=int(code))


class WorkbenchCommand(BaseCommand):
    """
    A command whose `handle` raises InputProblem or CommandError (exit 2), OutsideFailure (4), or CommandExit.

    Print the result through `answer` (stdout), everything else through `note` (stderr).
    """

    # Checks of routes and templates would double the start time; `check` and the server run them.
    requires_system_checks = [Tags.models]

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add --json to the subclass's arguments; report usage errors in one line."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument(
            "--json", action="store_true", help="print one JSON document and nothing else on stdout"
        )

        def refuse(message: str) -> NoReturn:
            raise CommandExit(ExitCode.WRONG_INPUT, f"{message} (see {parser.prog} --help)")

        parser.error = refuse  # type: ignore[method-assign]  # Django fixes the parser's class
        return parser

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run and leave the process with the contract's exit code."""
        code = ExitCode.OUR_FAULT
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # independent of the terminal's locale
        try:
            namespace = self.create_parser(argv[0], argv[1]).parse_args(list(argv[2:]))
            options = vars(namespace)
            positional = options.pop("args", ())
            handle_default_options(namespace)
            self.execute(*positional, **options)
            code = ExitCode.DONE
        except CommandError as error:
            code = ExitCode(error.returncode)
            self._report(error)
        except Exception:  # noqa: BLE001  a crash must not exit 1, which means "no"
            traceback.print_exc()
        finally:
            connections.close_all()
        if code:
            sys.exit(code)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; turn every expected failure into a CommandError with its exit code."""
        self.as_json = bool(options.get("json"))
        try:
            return super().execute(*args, **options)
        except CommandExit:
            raise
        except (CommandError, InputProblem) as error:
            raise CommandExit(ExitCode.WRONG_INPUT, _one_line(error)) from error
        except OutsideFailure as error:
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, _one_line(error)) from error
        except (OperationalError, ProgrammingError) as error:
            raise _database_problem(error) from error
        except BrokenPipeError as error:
            # The reader of the output closed it; keep Python from reporting that at shutdown.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, "the reader of the output closed it") from error
        except KeyboardInterrupt as error:
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, "stopped; finished work is saved") from error

    def answer(self, document: Mapping[str, Any], text: str) -> None:
        """Print the result: the document with --json, else the text."""
        self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) if self.as_json else text)

    def note(self, text: str) -> None:
        """Print a line on stderr, beside the result."""
        self.stderr.write(text, lambda line: line)

    def note_ignored(self, fields: Mapping[str, int]) -> None:
        """Report unknown fields of a file and the number of lines that have them."""
        for name, lines in sorted(fields.items()):
            self.note(f"ignored field '{name}' on {lines:,} {'line' if lines == 1 else 'lines'}")

    def answer_import(self, result: ImportResult, what: str) -> None:
        """Print the result of an import and the fields that it ignored."""
        self.note_ignored(result.ignored)
        for text in result.notes:
            self.note(text)
        counts = {"created": result.created, "unchanged": result.unchanged, "updated": result.updated}
        words = ", ".join(f"{count:,} {word}" for word, count in counts.items())
        self.answer(counts, f"{what}: {words}")

    def _report(self, error: CommandError) -> None:
        if message := str(error):
            self.stderr.write(f"error: {message}" if not message.startswith("error") else message)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _database_problem(error: Exception) -> Exception:
    """Map a missing table to a usage error, a lost database to an outside failure; keep other errors."""
    text = _one_line(error)
    if "no such table" in text or ("relation" in text and "does not exist" in text):
        return CommandExit(ExitCode.WRONG_INPUT, "the database has no tables yet: run manage.py migrate")
    if isinstance(error, OperationalError):
        return CommandExit(ExitCode.OUTSIDE_FAILURE, f"the database failed: {text}")
    return error
