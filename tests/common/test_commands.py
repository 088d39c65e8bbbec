"""Exit codes and --json of every command, through the command line and through call_command."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.problems import ImportProblem, OutsideFailure

ROOT = Path(__file__).resolve().parents[2]


def command_of(action: Callable[[WorkbenchCommand], None]) -> WorkbenchCommand:
    class Command(WorkbenchCommand):
        def handle(self, *args: Any, **options: Any) -> None:
            action(self)

    return Command()


def raises(error: BaseException) -> Callable[[WorkbenchCommand], None]:
    def action(_: WorkbenchCommand) -> None:
        raise error

    return action


FAILURES: list[tuple[BaseException, int, str]] = [
    (
        ImportProblem("chats.jsonl", 7, "messages[2].role", "is missing"),
        2,
        "chats.jsonl line 7, messages[2].role: is",
    ),
    (CommandError("two\nlines"), 2, "two lines"),
    (OutsideFailure("the endpoint answers 500"), 4, "the endpoint answers 500"),
    (KeyboardInterrupt(), 4, "stopped"),
    (OperationalError("connection refused"), 4, "the database failed: connection refused"),
    (CommandExit(ExitCode.INCONCLUSIVE, "paused at its budget"), 3, "paused at its budget"),
]


def test_a_database_without_tables_is_wrong_usage() -> None:
    error = OperationalError("no such table: labeling_chat")
    error.__cause__ = sqlite3.OperationalError("no such table: labeling_chat")
    with pytest.raises(CommandError, match=r"run manage\.py migrate") as called:
        call_command(command_of(raises(error)))
    assert called.value.returncode == 2


@pytest.mark.parametrize(("error", "code", "words"), FAILURES)
def test_a_failure_is_one_line_and_its_exit_code(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError) as called:
        call_command(command_of(raises(error)))
    assert called.value.returncode == code
    with pytest.raises(SystemExit) as left:
        command_of(raises(error)).run_from_argv(["manage.py", "try"])
    assert left.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_a_gate_that_failed_after_its_answer_says_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    def action(command: WorkbenchCommand) -> None:
        command.answer({"gate": "fail"}, "the gate failed")
        raise CommandExit(ExitCode.NO)

    with pytest.raises(SystemExit) as left:
        command_of(action).run_from_argv(["manage.py", "try", "--json"])
    out, err = capsys.readouterr()
    assert (left.value.code, json.loads(out), err) == (1, {"gate": "fail"}, "")


def test_a_crash_is_70_with_its_traceback_and_never_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_of(raises(ZeroDivisionError("ours"))).run_from_argv(["manage.py", "try"])
    assert left.value.code == 70
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        call_command(command_of(raises(ZeroDivisionError("ours"))))


def test_done_leaves_with_0_without_a_word_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    command_of(lambda command: command.answer({"n": 1}, "one")).run_from_argv(["manage.py", "try"])
    assert capsys.readouterr() == ("one\n", "")


def test_json_is_the_only_thing_on_stdout() -> None:
    def action(command: WorkbenchCommand) -> None:
        command.note("half way")
        command.answer({"name": "ä"}, "text")

    out, err = io.StringIO(), io.StringIO()
    call_command(command_of(action), "--json", stdout=out, stderr=err)
    assert (json.loads(out.getvalue()), err.getvalue()) == ({"name": "ä"}, "half way\n")


def test_wrong_usage_is_2_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_of(lambda _: None).run_from_argv(["manage.py", "try", "--nonsense"])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1)
    assert "--nonsense" in err


def manage(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.heavy
def test_the_real_command_line_keeps_the_codes(tmp_path: Path) -> None:
    (tmp_path / "empty.sqlite3").touch()
    url = f"sqlite:///{tmp_path / 'empty.sqlite3'}"
    file = tmp_path / "chats.jsonl"
    absent = manage("import_chats", str(file), DATABASE_URL=url)
    assert (absent.returncode, absent.stdout) == (2, "")
    assert absent.stderr == f"error: {file}: no such file\n"
    file.write_text('{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}\n', encoding="utf-8")
    empty = manage("import_chats", str(file), "--json", DATABASE_URL=url)
    assert (empty.returncode, empty.stdout) == (2, "")
    assert empty.stderr == "error: The database has no tables yet, or older ones: run manage.py migrate\n"
