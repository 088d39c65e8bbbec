"""Base class of all commands: --json, one-line errors, documented exit codes."""

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, ClassVar, NoReturn

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, CommandParser, handle_default_options
from django.db import DatabaseError, InterfaceError, OperationalError, connections, transaction

from common.database import database_trouble
from common.jsonl import ImportResult
from common.problems import InputProblem, OutsideFailure, settings_named

# A disk that takes no more, whatever is written to it.
CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


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

    # What Ctrl-C leaves behind, as its message says; a command that stores its work step by step says so.
    on_stop: ClassVar[str] = "nothing was changed"

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
        parse = parser.parse_known_args

        def parse_filled(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
            if name := _empty_argument(args or ()):
                refuse(f"argument {name}: must not be empty")
            return parse(args, namespace)

        parser.parse_known_args = parse_filled  # type: ignore[method-assign, assignment]
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
        except SystemExit:  # --help and --version, which argparse prints
            code = ExitCode.DONE
            try:
                sys.stdout.flush()
            except OSError as error:
                code = ExitCode.OUTSIDE_FAILURE
                self._report(_unwritable(error))
        finally:
            connections.close_all()
        if code:
            sys.exit(code)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; turn every expected failure into a CommandError with its exit code."""
        self.as_json = bool(options.get("json"))
        self.is_complete = False
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
            return output
        except CommandExit:
            raise
        except (CommandError, InputProblem) as error:
            raise CommandExit(ExitCode.WRONG_INPUT, f"{_one_line(error)}{_settings_of(error)}") from error
        except OutsideFailure as error:
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, _one_line(error)) from error
        except (DatabaseError, InterfaceError) as error:
            raise database_problem(error) from error
        except OSError as error:
            if error.errno in CANNOT_WRITE or isinstance(error, BrokenPipeError):
                raise _unwritable(error) from error
            raise
        except KeyboardInterrupt as error:
            left = "the work was complete" if self.is_complete else self.on_stop
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, f"stopped; {left}") from error

    def answer(self, document: Mapping[str, Any], text: str) -> None:
        """Print the result of complete work: the document with --json, else the text."""
        self.is_complete = True
        self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False) if self.as_json else text)
        self.stdout.flush()

    def note(self, text: str) -> None:
        """Print a line on stderr, beside the result."""
        self.stderr.write(text, lambda line: line)

    def note_ignored(self, fields: Mapping[str, int]) -> None:
        """Report unknown fields of a file and the number of lines that have them."""
        for name, lines in sorted(fields.items()):
            self.note(f"ignored field '{name}' on {lines:,} {'line' if lines == 1 else 'lines'}")

    def answer_import(self, result: ImportResult, what: str) -> None:
        """Print the result of an import and the fields that it ignored."""
        self.is_complete = True
        self.note_ignored(result.ignored)
        for text in result.notes:
            self.note(text)
        counts = {"created": result.created, "unchanged": result.unchanged, "updated": result.updated}
        words = ", ".join(f"{count:,} {word}" for word, count in counts.items())
        self.answer(counts, f"{what}: {words}")

    def _report(self, error: CommandError) -> None:
        if message := str(error):
            with suppress(OSError):  # a full disk takes no message either
                self.stderr.write(f"error: {message}" if not message.startswith("error") else message)


def _empty_argument(args: Sequence[str]) -> str:
    """Return the name of the first argument that is blank; an empty name would select nothing or all."""
    for before, arg in zip(("", *args), args, strict=False):
        option, equals, value = arg.partition("=")
        if not arg.strip():
            return before if before.startswith("-") else "of the command"
        if option.startswith("--") and equals and not value.strip():
            return option
    return ""


def _unwritable(error: OSError) -> CommandExit:
    """Return the exit of a command whose output nobody takes, and discard what Python would still flush."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        with suppress(OSError):  # a replaced stdout has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return CommandExit(ExitCode.OUTSIDE_FAILURE, "the reader of the output closed it")
    return CommandExit(ExitCode.OUTSIDE_FAILURE, f"the output cannot be written: {error.strerror}")


class ImportCommand(WorkbenchCommand):
    """A command that imports a file; with --dry-run it answers the same and writes nothing."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add --dry-run to the subclass's arguments."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--dry-run", action="store_true", help="check the file and count; write nothing")
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; undo all writes of a dry run."""
        if not options.get("dry_run"):
            return super().execute(*args, **options)
        with transaction.atomic():
            answer = super().execute(*args, **options)
            transaction.set_rollback(True)
        self.note("dry run: nothing was written")
        return answer


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _settings_of(error: Exception) -> str:
    names = settings_named(error)
    return f" (setting{'s' if names[1:] else ''}: {', '.join(names)})" if names else ""


def database_problem(error: DatabaseError | InterfaceError) -> Exception:
    """Return the CommandExit for trouble with the database; the error itself for a wrong query of ours."""
    if trouble := database_trouble(error):
        code = ExitCode.WRONG_INPUT if trouble.usage else ExitCode.OUTSIDE_FAILURE
        return CommandExit(code, trouble.sentence)
    if isinstance(error, OperationalError):
        return CommandExit(ExitCode.OUTSIDE_FAILURE, f"the database failed: {_one_line(error)}")
    return error
