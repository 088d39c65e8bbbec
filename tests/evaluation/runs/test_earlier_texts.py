"""A run whose judge was made with earlier fixed texts of the prompts never mixes them with today's."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from common.problems import InputProblem
from evaluation.models.judges import Judge
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_cancel, run_resume
from evaluation.runs.services.runs import RunRefused
from evaluation.runs.worker.batch import batch_advance
from evaluation.runs.worker.enqueue import sweep_runs
from labeling.models.people import User
from tests.factories.batches import batching, planned
from tests.factories.runs import always, answering, evaluate, the_run, verdicts_of, workspace

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "began with earlier texts of the judge's prompts, which an upgrade changed: start a new run"


def paused_before_an_upgrade(settings: Settings) -> Run:
    workspace("polite", chats=2)
    with answering(settings, always(True)):
        assert evaluate("--set", "calibration", "--engine", "direct").code == 0
    run = the_run()
    Judge.objects.update(config=run.judge.config | {"templates": "earlier texts"})
    Run.objects.update(state=Run.State.PAUSED, finished_at=None)
    return the_run()


def test_it_is_not_resumed_and_says_why(settings: Settings, client: Client, lead_user: User) -> None:
    run = paused_before_an_upgrade(settings)
    with answering(settings, always(False)) as stub:
        ended = evaluate("--resume", str(run.pk))
        assert (ended.code, stub.count) == (2, 0)
    assert WORDS in ended.error
    with pytest.raises(RunRefused, match="earlier texts"):
        run_resume(run=run, by=None)
    client.force_login(lead_user)
    url = reverse("evaluation:run_act", args=[run.pk, "resume"])
    assert "began with earlier texts" in client.post(url, follow=True).content.decode()
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED


def test_its_verdicts_stay_and_a_new_run_has_a_judge_of_its_own(settings: Settings) -> None:
    run = paused_before_an_upgrade(settings)
    kept = verdicts_of(run)
    assert run_cancel(run=run, by=None).state == Run.State.CANCELLED
    Judge.objects.update(fingerprint="of the earlier texts")
    with answering(settings, always(True)):
        assert evaluate("--set", "calibration", "--engine", "direct").code == 0
    assert the_run().judge != run.judge
    assert verdicts_of(run) == kept


def test_a_batch_at_the_endpoint_is_cancelled_with_its_run(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls = 99
        run = planned(settings, stub)
        batch_advance(run)
        Judge.objects.update(config=run.judge.config | {"templates": "earlier texts"})
        with pytest.raises(InputProblem, match="cancel this one to keep its verdicts"):
            batch_advance(the_run())
        run_cancel(run=the_run(), by=None)
        sweep_runs()
        assert stub.steps.count("cancel") == 1
