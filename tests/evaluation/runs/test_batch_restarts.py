"""A batch run goes on after a kill -9 between any two steps: nothing is sent or paid twice."""

import subprocess
import sys
import threading
import time

import pytest
from django.db import connection
from pytest_django import Settings

from evaluation.models.runs import Run, Verdict
from evaluation.runs.worker import batch as runner
from evaluation.runs.worker.batch import BatchStep, batch_advance
from tests.factories.batches import DIRECT, batching, planned, stepped
from tests.factories.runs import always, environment, evaluate, outcomes, the_run, workspace

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """Stands for a kill -9."""


KILLS = {
    "before the upload": ("BatchClient", "upload"),
    "before the creation": ("BatchClient", "create"),
    "before the answers": ("BatchClient", "answers"),
    "before the batch is closed": ("Collector", "end"),
}


@pytest.mark.parametrize("lost", ["upload", "create"])
def test_a_step_whose_reply_was_lost_is_not_done_twice(settings: Settings, lost: str) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.lose = [lost]
        assert batch_advance(run).trouble
        stepped(run)
        assert stub.steps.count("upload") == stub.steps.count("create") == 1
    assert run.state == "done"
    assert outcomes() == ["answered", "answered"]


@pytest.mark.flow
@pytest.mark.heavy
def test_a_process_that_is_killed_while_it_waits_leaves_its_batch_to_the_next(settings: Settings) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls = 3
        command = [sys.executable, "manage.py", "evaluate", *DIRECT, "--batch"]
        environ = environment(stub.base_url, LACE_BATCH_POLL_SECONDS="1")
        with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as process:
            while "look" not in stub.steps:
                time.sleep(0.05)
            process.kill()
        assert evaluate("--resume", str(the_run().pk)).code == 0
        assert stub.steps.count("upload") == stub.steps.count("create") == 1
    assert outcomes() == ["answered"] * 3


@pytest.mark.parametrize("moment", list(KILLS))
def test_a_killed_step_continues_where_it_was(
    settings: Settings, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace("polite", chats=3)
    owner, method = KILLS[moment]

    def kill(*args, **kwargs):
        raise Killed

    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        with monkeypatch.context() as patched:
            patched.setattr(getattr(runner, owner), method, kill)
            with pytest.raises(Killed):
                stepped(run)
        stepped(run)
        assert stub.steps.count("upload") == stub.steps.count("create") == len(stub.batches) == 1
        assert len(stub.asked) == 3
    assert outcomes() == ["answered"] * 3
    assert Verdict.objects.filter(value=True).count() == 3


def test_a_process_that_steps_keeps_others_waiting(settings: Settings) -> None:
    workspace("polite", chats=1)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        steps: list[BatchStep] = []

        def other() -> None:
            steps.append(batch_advance(Run.objects.get(pk=run.pk)))
            connection.close()

        lease = runner._lease(run)
        assert lease is not None
        # As another process would see it: ours, under a process id that is not the asker's.
        type(lease).objects.filter(pk=lease.pk).update(pid=1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert steps == [BatchStep(waiting=True)]
        assert stub.steps == []
        lease.delete()
        stepped(run)
    assert run.state == "done"
