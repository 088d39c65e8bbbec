"""kill -9 or Ctrl-C in the middle: nothing is lost or counted twice, no stored answer is paid for again."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from django.conf import settings as project
from django.db import connections

from evaluation.models.runs import Attempt, ModelCall, Run, Unit, Verdict, WorkerLease
from tests.factories.runs import always, environment, verdicts_of, workspace
from tests.stub_endpoint import StubEndpoint, StubReply, case_of

pytestmark = pytest.mark.django_db(transaction=True)
CHATS, IN_FLIGHT = 30, 4


@contextmanager
def evaluating(stub: StubEndpoint, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`manage.py evaluate` as a process of its own on this test's database."""
    connections.close_all()
    command = [sys.executable, "manage.py", "evaluate", *args, "--json"]
    process = subprocess.Popen(
        command,
        cwd=project.BASE_DIR,
        env=environment(stub.base_url, LACE_MAX_IN_FLIGHT=str(IN_FLIGHT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has Ctrl-C ignored, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def slow(seconds: float):
    good = always(True)
    return lambda body: StubReply(good(body).text, delay=seconds)


def wait_for(condition, *, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def all_in_flight(stub: StubEndpoint) -> bool:
    """Every slot waits for an answer to a request that has arrived."""
    open_attempts = Attempt.objects.filter(ended_at=None).count()
    return open_attempts == IN_FLIGHT and stub.count == Attempt.objects.count()


def stopped_in_the_middle(stub: StubEndpoint, how: signal.Signals) -> tuple[int, str]:
    """Start a run, signal it once answers are stored and requests are in flight; its exit code and stderr."""
    with evaluating(stub, "--set", "calibration", "--engine", "direct") as process:
        wait_for(lambda: Verdict.objects.count() >= 6, what="the first verdicts")
        stub.answer = slow(20)  # whatever is asked from now on is in flight when the signal comes
        wait_for(lambda: all_in_flight(stub), what="calls in flight")
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
        return process.returncode, err


def assert_resumes_without_asking_a_stored_question(stub: StubEndpoint) -> None:
    run = Run.objects.get()
    stored = ModelCall.objects.filter(state="answered").count()
    cut_short = Attempt.objects.exclude(outcome="answered").count()
    assert 6 <= stored < CHATS and 1 <= cut_short <= IN_FLIGHT
    stub.answer, before = slow(0), stub.count
    with evaluating(stub, "--resume", str(run.pk)) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert (answer["state"], answer["verdicts"], answer["calls"]) == ("done", CHATS, CHATS)
    assert stub.count - before == CHATS - stored
    assert Attempt.objects.count() == stub.count
    assert verdicts_of(run) == {(f"c{n}", "polite"): ("read", True) for n in range(CHATS)}
    outcomes = Counter(Attempt.objects.values_list("outcome", flat=True))
    assert outcomes == {"answered": CHATS, "unknown_maybe_billed": cut_short}
    asked = Counter(case_of(body, {f"c{n}": {} for n in range(CHATS)}) for body in stub.requests)
    assert sum(asked.values()) - len(asked) == cut_short


@pytest.mark.flow
@pytest.mark.heavy
def test_kill_9_loses_nothing_and_pays_for_no_answer_twice() -> None:
    workspace("polite", chats=CHATS)
    with StubEndpoint(slow(0.05)) as stub:
        code, _ = stopped_in_the_middle(stub, signal.SIGKILL)
        assert code == -signal.SIGKILL
        assert Unit.objects.filter(state="leased").exists()
        assert_resumes_without_asking_a_stored_question(stub)
    assert not WorkerLease.objects.filter(units__isnull=False).exists()


@pytest.mark.flow
@pytest.mark.heavy
def test_ctrl_c_exits_4_gives_everything_back_and_says_how_to_go_on() -> None:
    workspace("polite", chats=CHATS)
    with StubEndpoint(slow(0.05)) as stub:
        code, err = stopped_in_the_middle(stub, signal.SIGINT)
        run = Run.objects.get()
        assert (code, run.state, run.error) == (4, "paused", "interrupted")
        assert err.strip().splitlines()[-1].startswith("error: stopped; ")
        assert f"continue with --resume {run.pk}" in err
        assert "Traceback" not in err
        assert not WorkerLease.objects.exists()
        assert set(Unit.objects.values_list("state", flat=True)) == {"open", "done"}
        assert not Attempt.objects.filter(outcome="sent").exists()
        assert_resumes_without_asking_a_stored_question(stub)
