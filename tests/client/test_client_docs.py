"""Every example of docs/client.md and of the CI files, executed as it stands against a real server.

The judge behind the server is the local stub model; a thread of this process does what workers do.
"""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings as project
from django.db import connections
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.models.regressions import RegressionTest
from alignment.regression.worker import regressions_sweep
from deploy.client import zip_client
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.worker.execute import run_execute
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import Role
from labeling.models.rubric import Criterion
from labeling.people.services.tokens import token_create
from tests.factories.gate_reference import CHATS, MARK, champion_of, judging, make_golden
from tests.factories.rows import make_user
from tests.factories.runs import answering
from tests.files import write_jsonl
from tests.stub_endpoint import Body, StubReply, conversation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.heavy]

ROOT: Path = project.BASE_DIR
PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "client" / "examples"
SCOPES = ["send_chats", "manage_labeling", "start_runs", "see_judge", "edit_prompts"]  # those on the page
WORSE = "Guess."


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


def answer(body: Body) -> StubReply:
    """Right about the labelled chats with MARK, wrong about most with WORSE; False on the new ones."""
    golden = judging(champion=20, wrong={MARK: 0, WORSE: CHATS - 10})
    if "In case g" in conversation(body):
        return golden(body)
    return StubReply("Rude.\n\nVERDICTS\npolite: FALSE")


@dataclass
class Repository:
    """A repository of prompts, with the client, and the environment of its CI jobs."""

    folder: Path
    env: dict[str, str]

    def prompt(self, mark: str) -> None:
        text = f"# Context\nA shop.\n\n# Objective\nIs polite so?\n\n# Style\n{mark}\n"
        (self.folder / "prompts" / "polite.md").write_text(text, encoding="utf-8")

    def execute(self, command: str | list[str], **env: str) -> subprocess.CompletedProcess[str]:
        """Execute a shell line or a program, while the workers of the server work."""
        with at_work():
            return subprocess.run(
                command,
                shell=isinstance(command, str),
                cwd=self.folder,
                env=self.env | env,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )


class at_work:  # reads as a phrase
    """A thread that executes the runs of the database until the block ends."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _work(self) -> None:
        try:
            while not self._over.wait(0.1):
                for run in Run.objects.filter(state=Run.State.RUNNING):
                    run_execute(run, on_unit=lambda failed: None)
                regressions_sweep()
        except BaseException as error:  # noqa: BLE001  # raised again by the test
            self._error = error
        finally:
            connections.close_all()


@pytest.fixture
def golden(transactional_db: None, settings: Settings) -> Iterator[ChatSet]:
    with answering(settings, answer):
        chat_set = make_golden()
        champions_ensure(criteria=list(Criterion.objects.all()), by=None)
        yield chat_set


@pytest.fixture
def repository(golden: ChatSet, tmp_path: Path, live_server: LiveServer) -> Repository:
    zip_client(tmp_path / "ci" / "lace-client.pyz")
    (tmp_path / "prompts").mkdir()
    talk = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Wait."}]
    write_jsonl(tmp_path / "chats.jsonl", *({"id": f"n{n}", "messages": talk} for n in range(3)))
    secret = token_create(user=make_user("ines", Role.LEAD), name="ci", scopes=SCOPES, days=1).secret
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LACE_URL": live_server.url,
        "LACE_TOKEN": secret,
    }
    found = Repository(tmp_path, env)
    found.prompt(MARK)
    return found


def test_the_page_executes_from_top_to_bottom(repository: Repository) -> None:
    """Chats, run, report, gate, first as commands and then in Python."""
    install, steps, gate = blocks("sh")
    assert install == "pip install ./client\n"  # into the environment of the tests it is not installed
    done = repository.execute(f"set -e\n{steps}{gate}")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "3 chats: 3 created, 0 updated, 0 unchanged, 0 refused, 3 added to nightly" in done.stdout
    assert "3 of 3 units" in done.stdout and "PASS polite version 2" in done.stdout
    members = ChatSetMember.objects.filter(chat_set__name="nightly")
    assert set(members.values_list("split", flat=True)) == {"dev"}
    path = str(ROOT / "client" / "src")
    scripts = [
        repository.execute([sys.executable, "-c", block], PYTHONPATH=path) for block in blocks("python")
    ]
    assert [(one.returncode, one.stderr) for one in scripts] == [(0, "")] * 3
    assert scripts[0].stdout.startswith("0 3 0\npolite not_enough_labels")
    assert scripts[1].stdout.startswith("pass [")
    assert scripts[2].stdout.strip().isdigit()
    # What was answered and stored is not paid for again, and nothing is released.
    assert PromptVersion.objects.count() == 2 and RegressionTest.objects.count() == 2
    assert champion_of().number == 1


def ci_commands(name: str) -> list[str]:
    """The commands of the job in a CI file."""
    document: Any = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    if "jobs" in document:
        (job,) = document["jobs"].values()
        return [step["run"] for step in job["steps"] if "run" in step]
    return list(document["gate"]["script"])


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
@pytest.mark.parametrize(("mark", "exit_code", "word"), [(MARK, 0, "PASS"), (WORSE, 1, "FAIL")])
def test_the_job_of_a_ci_file_says_what_the_gate_says(
    name: str, mark: str, exit_code: int, word: str, repository: Repository
) -> None:
    repository.prompt(mark)
    (command,) = ci_commands(name)
    done = repository.execute(command)
    assert (done.returncode, word in done.stdout) == (exit_code, True), done.stderr + done.stdout


def test_the_page_shows_the_ci_files_as_they_are() -> None:
    shown = dict(zip(("github-actions.yml", "gitlab-ci.yml"), blocks("yaml"), strict=True))
    assert shown == {name: (EXAMPLES / name).read_text(encoding="utf-8") for name in shown}


def test_the_champions_own_text_needs_no_test(repository: Repository) -> None:
    (repository.folder / "prompts" / "polite.md").write_text(champion_of().text, encoding="utf-8")
    done = repository.execute(ci_commands("gitlab-ci.yml")[0])
    assert (done.returncode, done.stdout) == (0, "PASS polite version 1: this text is the champion\n")
    assert not RegressionTest.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ("gate prompts/rude.md --set golden", {}, "prompts/rude.md"),
        ("gate prompts/polite.md --set nothing", {}, "There is no chat set 'nothing'"),
        ("gate prompts/polite.md --set golden", {"LACE_TOKEN": "lace_x"}, "unknown, revoked or expired"),
        ("run --set golden", {}, "engine: Name an engine or a profile"),
        ("report 99", {}, "Not found, or the token lacks a scope"),
        ("chats prompts/polite.md", {}, "prompts/polite.md line 1"),
    ],
)
def test_wrong_input_is_exit_2_with_one_line(
    arguments: str, env: dict[str, str], words: str, repository: Repository
) -> None:
    command = [sys.executable, "ci/lace-client.pyz", *shlex.split(arguments)]
    done = repository.execute(command, **env)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and words in line
