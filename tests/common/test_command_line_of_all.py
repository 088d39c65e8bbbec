"""Every command: empty names, wrong names and a full disk end in one line, and change nothing."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command, get_commands, load_command_class

from common.commands import WorkbenchCommand
from evaluation.models.prompts import PromptVersion
from labeling.models.chats import Chat, ChatSet
from tests.factories.compared_runs import Compared, make_compared

CHATS = '{"id": "new", "messages": [{"role": "user", "content": "Hi"}]}\n'
PROMPT = "# Context\nA shop.\n\n# Objective\nJudge politeness.\n"
REGRESS = ["regress", "--criterion", "polite", "--prompt", "{}/prompt.md", "--set"]


def our_commands() -> list[str]:
    ours = {config.name for config in apps.get_app_configs() if (Path(config.path) / "management").is_dir()}
    commands = {name: app for name, app in get_commands().items() if app in ours}
    classes = {name: load_command_class(app, name) for name, app in commands.items()}
    return sorted(name for name, one in classes.items() if isinstance(one, WorkbenchCommand))


@pytest.fixture
def compared(db: None) -> Compared:
    return make_compared()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "chats.jsonl").write_text(CHATS, encoding="utf-8")
    (tmp_path / "prompt.md").write_text(PROMPT, encoding="utf-8")
    return tmp_path


def test_every_command_is_known() -> None:
    assert {"import_chats", "regress", "list_runs", "healthcheck"} <= {*our_commands()}


@pytest.mark.parametrize("name", our_commands())
def test_an_empty_argument_is_refused_by_name(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    options = [
        action.option_strings[-1]
        for action in command.create_parser("manage.py", name)._actions
        if action.option_strings and action.nargs is None
    ]
    for option in options:
        for args in ([option, ""], [option, " "], *([[f"{option}="]] * option.startswith("--"))):
            with pytest.raises(CommandError, match=f"argument {option}: must not be empty") as refused:
                call_command(name, *args)
            assert refused.value.returncode == 2


def test_chats_are_not_imported_for_a_set_without_a_name(files: Path, db: None) -> None:
    with pytest.raises(CommandError, match="argument --set: must not be empty"):
        call_command("import_chats", str(files / "chats.jsonl"), "--set", "")
    assert not Chat.objects.exists()


WRONG: list[list[str]] = [
    [*REGRESS, "nonsense"],
    [*REGRESS, "dev", "--by", "nobody"],
    [*REGRESS, "dev", "--profile", "nonsense"],
    [*REGRESS, "dev", "--policy", "{}/none.json"],
    ["add_prompt", "--criterion", "polite", "--prompt", "{}/prompt.md", "--examples", "{}/none.jsonl"],
    ["add_prompt", "--criterion", "polite", "--prompt", "{}/prompt.md", "--promote"],
    ["import_chats", "{}/chats.jsonl", "--set", "new", "--rubric", "nonsense"],
    ["import_chats", "{}/chats.jsonl", "--set", "new", "--split", "nonsense"],
    ["import_chats", "{}/chats.jsonl", "--set", "new", "--cluster-key", "nonsense"],
    ["import_verdicts", "{}/chats.jsonl", "--set", "nonsense"],
    ["evaluate", "--set", "nonsense", "--engine", "direct"],
    ["evaluate", "--set", "dev", "--engine", "direct", "--criteria", "nonsense"],
    ["probe_judge", "--set", "nonsense"],
    ["probe_judge", "--set", "dev", "--criteria", "nonsense"],
]


def tables() -> dict[str, list[Any]]:
    rows = {model._meta.label: list(model._default_manager.values_list()) for model in apps.get_models()}
    return {name: sorted(map(repr, values)) for name, values in rows.items() if values}


def test_a_wrong_argument_writes_nothing(compared: Compared, files: Path) -> None:
    ChatSet.objects.update(name="dev")
    before = tables()
    assert PromptVersion.objects.exists() or before
    for line in WRONG:
        with pytest.raises(CommandError) as refused:
            call_command(*[word.format(files) for word in line])
        assert refused.value.returncode == 2, line
        assert tables() == before, line


# ---------- a full disk ----------


@contextmanager
def full_disk() -> Iterator[None]:
    """Standard output on a disk that is full; within the test, for pytest replaces it before each."""
    with open("/dev/full", "wb") as disk, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(disk, encoding="utf-8"))
        yield


PRINTS: dict[str, list[str]] = {
    "alignment_report": ["--set", "dev"],
    "export": ["chats", "--set", "dev"],
    "import_chats": ["{}/chats.jsonl", "--json"],
    "list_runs": ["--json"],
    "healthcheck": [],
    "add_prompt": ["--criterion", "polite", "--prompt", "{}/prompt.md"],
}


@pytest.mark.parametrize("name", PRINTS)
def test_a_full_disk_is_one_line_and_4(
    name: str, compared: Compared, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ChatSet.objects.update(name="dev")
    with full_disk(), pytest.raises(SystemExit) as left:
        command = load_command_class(get_commands()[name], name)
        command.run_from_argv(["manage.py", name, *(word.format(files) for word in PRINTS[name])])
    last = capsys.readouterr().err.splitlines()[-1]
    assert (left.value.code, last) == (4, "error: the output cannot be written: No space left on device")


@pytest.mark.parametrize("name", our_commands())
def test_help_on_a_full_disk_is_one_line_and_4(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with full_disk(), pytest.raises(SystemExit) as left:
        command = load_command_class(get_commands()[name], name)
        command.run_from_argv(["manage.py", name, "--help"])
    assert (left.value.code, capsys.readouterr().err) == (
        4,
        "error: the output cannot be written: No space left on device\n",
    )


# ---------- Ctrl-C ----------


class Stopped:
    """Presses Ctrl-C when a method is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_within_an_import_keeps_nothing_and_says_so(
    files: Path, compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tables()
    monkeypatch.setattr("labeling.chats.services.chat_sets.MembersImport.finish", Stopped())
    with pytest.raises(CommandError, match="stopped; nothing was changed") as stopped:
        call_command("import_chats", str(files / "chats.jsonl"), "--set", "new")
    assert (stopped.value.returncode, tables()) == (4, before)


def test_ctrl_c_after_an_import_says_that_it_is_complete(
    files: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkbenchCommand, "note_ignored", Stopped())
    with pytest.raises(CommandError, match="stopped; the work was complete"):
        call_command("import_chats", str(files / "chats.jsonl"))
    assert Chat.objects.filter(external_id="new").exists()
