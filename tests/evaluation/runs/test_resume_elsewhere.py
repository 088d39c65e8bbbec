"""A run goes on at its own endpoint only, and says why it does not in the same words everywhere."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from evaluation.models.runs import Attempt, Run
from evaluation.runs.services.control import run_pause, run_resume
from evaluation.runs.services.runs import RunRefused
from evaluation.tasks import process_units
from labeling.models.people import User
from tests.factories.runs import always, answering, command, evaluate, workspace
from tests.factories.workers import control, launched, purge_tasks
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet() -> None:
    purge_tasks()


@pytest.fixture
def paused(settings: Settings) -> Run:
    """A paused run of another endpoint than the one in the settings by now."""
    with answering(settings, always(True)):
        run = launched(workspace("polite", chats=2))
        run_pause(run=run, by=None)
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "", "sk-of-another-vendor"
    return run


def sentence(run: Run) -> str:
    began = run.judge.config["endpoint"]
    return (
        f"run {run.pk} began at {began}, but the server is set to https://api.openai.com/v1. "
        "Ask the operator of this server to set the endpoint back and restart the workers, or start a new run"
    )


def test_a_run_of_another_endpoint_is_refused_alike_by_page_api_and_commands(
    paused: Run, client: Client, lead_user: User
) -> None:
    client.force_login(lead_user)
    page = client.post(reverse("evaluation:run_act", args=[paused.pk, "resume"]), follow=True)
    assert sentence(paused) in page.content.decode()
    answer = client.post(reverse("api_run_resume", args=[paused.pk]), {}, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (409, sentence(paused))
    for ended in (control(paused, "resume"), evaluate("--resume", str(paused.pk))):
        named = "(settings: OPENAI_BASE_URL, OPENAI_API_KEY)"
        assert (ended.code, ended.error) == (2, f"error: {sentence(paused)} {named}")
    paused.refresh_from_db()
    assert (paused.state, paused.error) == ("paused", "paused by the command line")
    assert not Attempt.objects.exists()


def test_a_budget_is_not_changed_by_a_refused_resume(paused: Run) -> None:
    with pytest.raises(RunRefused):
        run_resume(run=paused, by=None, budget_usd=5)  # type: ignore[arg-type]
    paused.refresh_from_db()
    assert paused.budget_usd is None


def test_an_endpoint_that_cannot_be_used_refuses_the_resume(
    paused: Run, settings: Settings, client: Client, lead_user: User
) -> None:
    settings.OPENAI_BASE_URL = "ftp://nowhere"
    client.force_login(lead_user)
    answer = client.post(reverse("api_run_resume", args=[paused.pk]), {}, content_type="application/json")
    assert answer.status_code == 409
    assert "the endpoint's address must start with http" in answer.json()["detail"]


# ---------- codes ----------


def test_no_page_no_answer_and_no_command_shows_the_code_of_an_error(
    settings: Settings, client: Client, lead_user: User
) -> None:
    with answering(settings, lambda body: StubReply(raw=b"<!doctype html><h1>Sorry</h1>")):
        chat_set = workspace("polite", chats=1)
        run = launched(chat_set)
        process_units(run.pk)
        ended = evaluate("--resume", str(run.pk))
    client.force_login(lead_user)
    shown = [
        client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode(),
        client.get(reverse("api_run", args=[run.pk])).content.decode(),
        client.get(reverse("api_runs")).content.decode(),
        ended.err,
    ]
    for text in shown:
        assert "not_json" not in text
    for text in (shown[0], shown[1], shown[3]):
        assert "Not a completion: HTTP 200: the endpoint sent" in text
    listed = command("export", "verdicts", "--set", chat_set.name, "--run", str(run.pk), "-o", "/dev/null")
    assert "not_json" not in listed.out
    assert "not_json" not in str(run.verdicts.values_list("explanation", flat=True))


def test_codes_that_were_stored_earlier_are_words_too(client: Client, lead_user: User, paused: Run) -> None:
    Run.objects.filter(pk=paused.pk).update(error="server_error: HTTP 500")
    client.force_login(lead_user)
    assert client.get(reverse("api_run", args=[paused.pk])).json()["error"] == "Server error: HTTP 500"
