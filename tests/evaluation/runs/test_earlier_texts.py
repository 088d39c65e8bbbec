"""A run whose judge was made with earlier fixed texts of the prompts never mixes them with today's."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from evaluation.models.judges import Judge
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_cancel, run_resume
from evaluation.runs.services.runs import RunRefused
from labeling.models.people import User
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
