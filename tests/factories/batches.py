"""Runs through the Batch API for tests: the stub endpoint with files and batches, steps taken by hand."""

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_django import Settings

from evaluation.models.runs import Run
from evaluation.runs.worker.batch import BatchStep, batch_advance
from tests.factories.runs import evaluate, point_at, the_run
from tests.stub_batches import StubBatches
from tests.stub_endpoint import Answer

DIRECT = ("--set", "calibration", "--engine", "direct")


@contextmanager
def batching(settings: Settings, answer: Answer, *, prices: str = "") -> Iterator[StubBatches]:
    with StubBatches(answer) as stub:
        point_at(settings, stub.base_url, prices=prices)
        settings.LACE_BATCH_POLL_SECONDS = 0.01
        yield stub


def planned(settings: Settings, stub: StubBatches, *args: str) -> Run:
    """A batch run that has been started and not yet stepped."""
    stub.behaviour.has_api = False
    assert evaluate(*DIRECT, "--batch", *args).code == 4
    stub.behaviour.has_api = True
    run = the_run()
    Run.objects.filter(pk=run.pk).update(state="running", error="")
    return run


def stepped(run: Run, *, most: int = 20) -> BatchStep:
    """Step until nothing is waited for."""
    for _ in range(most):
        step = batch_advance(run)
        if not step.waiting:
            return step
    raise AssertionError(f"still waiting after {most} steps: {step}")
