"""What `serve` does with children that die: when it starts them again, and what it tells others."""

import json
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lace_site.keeper import (
    CRASH_LOOP,
    LONG_LIFE,
    STOPPED_SECONDS,
    WEB_FIRST,
    Child,
    Keeper,
    State,
    is_stopped,
)

DIES = [sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"]
LIVES = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)"]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def keeper(tmp_path: Path, said: list[str]) -> Iterator[Keeper]:
    children = [Child("web", LIVES, web=True), Child("judge1", DIES), Child("default", LIVES)]
    keeper = Keeper(children, say=said.append, record=tmp_path / "serve.json")
    keeper.start()
    yield keeper
    keeper.stop()


def see_death(keeper: Keeper, child: Child, now: float) -> None:
    """Wait until the child has ended, and look."""
    assert child.process is not None
    child.process.wait(30)
    keeper.look(now)


def test_a_dead_child_is_started_again_after_its_pause_and_the_others_live_on(
    keeper: Keeper, said: list[str]
) -> None:
    web, judge, default = keeper.children
    before = [web.process, default.process]
    now = time.monotonic()
    waiting = {"name": "judge1", "pid": None, "since": "", "restarts": 0, "state": "restarting"}
    see_death(keeper, judge, now)
    assert judge.told() | {"since": ""} == waiting
    keeper.look(now + 0.9)
    assert judge.told() | {"since": ""} == waiting
    keeper.look(now + 1.0)
    assert (judge.state, judge.restarts) == (State.RUNNING, 1)
    assert [web.process, default.process] == before
    assert said == ["judge1 ended with exit code 3 and is started again in 1 s"]


def test_a_web_server_that_was_killed_is_started_again_at_once(keeper: Keeper, said: list[str]) -> None:
    web = keeper.children[0]
    assert web.process is not None
    first = web.process
    first.kill()
    see_death(keeper, web, time.monotonic())
    assert web.process not in (first, None)
    assert said[0] == "web was killed by signal 9 and is started again"


def test_a_stopped_process_is_killed_after_two_seconds_and_started_again(
    keeper: Keeper, said: list[str]
) -> None:
    default = keeper.children[2]
    assert default.process is not None
    first, now = default.process, time.monotonic()
    first.send_signal(signal.SIGSTOP)
    while not is_stopped(first.pid):
        time.sleep(0.01)
    keeper.look(now)
    keeper.look(now + STOPPED_SECONDS - 0.1)
    assert default.process is first
    keeper.look(now + STOPPED_SECONDS)
    first.wait(30)
    for later in (0.2, 1.2):
        keeper.look(now + STOPPED_SECONDS + later)
    assert default.process not in (first, None)
    assert [line for line in said if line.startswith("default")] == [
        "default was stopped and does nothing: it is killed",
        "default was killed by signal 9 and is started again in 1 s",
    ]


def test_a_process_that_goes_on_in_time_is_left_alone(keeper: Keeper) -> None:
    default = keeper.children[2]
    assert default.process is not None
    first, now = default.process, time.monotonic()
    for later in range(3):
        first.send_signal(signal.SIGSTOP)
        while not is_stopped(first.pid):
            time.sleep(0.01)
        keeper.look(now + later)
        first.send_signal(signal.SIGCONT)
        while is_stopped(first.pid):
            time.sleep(0.01)
        keeper.look(now + later + 0.5)
    assert default.process is first


def deaths(child: Child, *times: float) -> list[str]:
    """The lines about a child that dies at these times, each time a second after its start."""
    lines = []
    for at in times:
        child.begun = at - 1.0
        lines.append(child.died(1, at))
    return lines


def test_pauses_grow_and_begin_anew_after_a_minute_of_life() -> None:
    child = Child("judge1", DIES)
    deaths(child, 100.0, 110.0, 120.0)
    assert child.due == 124.0
    child.begun = 200.0
    child.died(1, 200.0 + LONG_LIFE)
    assert child.due == 200.0 + LONG_LIFE + 1.0


def test_only_a_crash_loop_ends_the_restarts() -> None:
    child = Child("judge1", DIES)
    lines = deaths(child, *(float(n) for n in range(CRASH_LOOP)))
    assert child.state == State.GIVEN_UP
    assert "stays down" in lines[-1]
    assert "stays down" not in lines[-2]
    rare = Child("judge1", DIES)
    deaths(rare, *(40.0 * n for n in range(3 * CRASH_LOOP)))
    assert rare.state == State.RESTARTING


def test_the_web_server_is_never_given_up() -> None:
    web = Child("web", DIES, web=True)
    deaths(web, *(float(n) for n in range(2000)))  # longer than a power of two holds
    assert web.state == State.RESTARTING
    assert web.due - 1999 <= 4.0


def test_a_worker_that_dies_for_days_but_not_in_a_loop_is_started_again() -> None:
    judge = Child("judge1", DIES)
    deaths(judge, *(50.0 * n for n in range(2000)))
    assert judge.state == State.RESTARTING


def test_a_terminal_that_takes_no_line_ends_nothing(tmp_path: Path) -> None:
    def full(line: str) -> None:
        raise OSError(28, "No space left on device")

    keeper = Keeper([Child("judge1", DIES)], say=full, record=tmp_path / "gone" / "serve.json")
    keeper.start()
    judge = keeper.children[0]
    now = time.monotonic()
    see_death(keeper, judge, now)
    keeper.look(now + 1.0)
    assert judge.restarts == 1
    keeper.stop()


def test_the_others_start_once_the_web_server_answers_or_soon(tmp_path: Path, said: list[str]) -> None:
    web, default = Child("web", LIVES, web=True), Child("default", LIVES)
    keeper = Keeper([web, default], say=said.append, record=tmp_path / "serve.json")
    keeper.start(web_first=True)
    now = time.monotonic()
    keeper.look(now)
    assert (web.process is not None, default.process) == (True, None)
    assert now < default.due <= now + WEB_FIRST
    keeper.start_others()
    keeper.look(now)
    assert (default.process is not None, default.restarts, said) == (True, 0, [])
    keeper.start_others()
    keeper.stop()


def test_a_child_that_cannot_be_started_is_tried_again(
    keeper: Keeper, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    web, judge, _ = keeper.children
    now = time.monotonic()
    see_death(keeper, judge, now)
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", no_process)
        keeper.look(now + 1.0)
    assert said[-1] == "judge1 cannot be started: Resource temporarily unavailable"
    assert (web.state, judge.state) == (State.RUNNING, State.RESTARTING)
    keeper.look(now + 5.0)
    assert judge.state == State.RUNNING


def no_process(*_: object, **__: object) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_child_that_was_given_up_stays_down(keeper: Keeper) -> None:
    judge = keeper.children[1]
    assert judge.process is not None
    judge.process.wait(30)
    deaths(judge, *(float(n) for n in range(CRASH_LOOP)))
    keeper.look(time.monotonic() + 3600)
    assert judge.process is None


def test_other_processes_can_read_what_the_children_do(keeper: Keeper, tmp_path: Path) -> None:
    record = tmp_path / "serve.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    now = time.monotonic()
    see_death(keeper, keeper.children[1], now)
    told = {child["name"]: child for child in json.loads(record.read_text())["children"]}
    assert [told[name]["state"] for name in ("web", "judge1")] == ["running", "restarting"]
    assert told["judge1"]["pid"] is None
    keeper.look(now + 1)
    told = {child["name"]: child for child in json.loads(record.read_text())["children"]}
    assert (told["judge1"]["restarts"], told["default"]["restarts"]) == (1, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["serve.json"]
    keeper.stop()
    assert not record.exists()


def test_a_record_that_cannot_be_written_is_one_line_and_no_crash(tmp_path: Path, said: list[str]) -> None:
    keeper = Keeper([], say=said.append, record=tmp_path / "gone" / "serve.json")
    keeper.start()
    keeper.stop()
    assert said == [f"{tmp_path / 'gone' / 'serve.json'} cannot be written: No such file or directory"]
