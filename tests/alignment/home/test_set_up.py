"""The set-up steps of an empty workspace: their state from the data, where each is done, hiding the list."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from alignment.comparison.queries.scope import Scope
from alignment.home.queries.set_up import TARGETS, set_up
from alignment.reports.worker import report_store
from labeling.models.people import AuditEvent, User, Workspace
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.page_text import words_of
from tests.factories.rows import make_chat, make_rubric, make_set

pytestmark = pytest.mark.django_db
HIDE = "/home/set-up/"


@pytest.fixture(autouse=True)
def no_model(settings: Settings) -> None:
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def states() -> dict[str, str]:
    return {step.key: step.state for step in set_up().steps}


def test_the_first_open_step_is_next_and_the_others_come_later(lead: Client) -> None:
    assert states() == {"rubric": "next", **dict.fromkeys(list(TARGETS)[1:], "later")}
    page = words_of(lead.get("/"))
    assert "Set up your workspace" in page
    assert "0 of 7 steps done" in page


def test_steps_follow_from_the_data(lead: Client, rater_user: User) -> None:
    make_set(make_rubric("polite"), make_chat())
    assert states() == {
        "rubric": "done",
        "chats": "done",
        "raters": "done",
        "job": "next",
        "model": "later",
        "run": "later",
        "report": "later",
    }


def test_chats_without_a_set_leave_the_import_open(lead: Client) -> None:
    """Raters and judge work on the chats of a set, and the next step, a job, asks for one."""
    make_rubric("polite")
    make_chat()
    assert states()["chats"] == "next"


def test_a_step_that_is_done_leads_to_what_it_made(lead: Client) -> None:
    rubric = make_rubric("polite")
    step = next(one for one in set_up().steps if one.key == "rubric")
    assert (step.button, step.url) == ("Open", reverse("labeling:rubric_list"))
    assert rubric.name in words_of(lead.get(step.url))


def test_while_steps_are_open_home_does_not_say_that_nothing_waits(lead: Client) -> None:
    make_set(make_rubric("polite"), make_chat())
    page = words_of(lead.get("/"))
    assert "2 of 7 steps done" in page
    assert "No tasks for you" not in page and "need nothing from you" not in page


def test_a_model_in_the_settings_is_connected(lead: Client, settings: Settings) -> None:
    settings.OPENAI_BASE_URL = "http://localhost:9/v1"
    assert states()["model"] == "done"


def test_each_step_has_a_page_that_opens(lead: Client) -> None:
    for step in set_up().steps:
        assert step.url
        assert lead.get(step.url.partition("#")[0]).status_code == 200, step.key


def test_a_lead_hides_the_list_and_brings_it_back_in_settings(lead: Client) -> None:
    page = words_of(lead.post(HIDE, {"hide": ""}, follow=True))
    assert "Set-up list hidden" in page
    assert "Import chats" not in page
    assert "Show set-up steps" in words_of(lead.get(reverse("labeling:workspace")))
    assert "Import chats" in words_of(lead.post(HIDE, {"show": ""}, follow=True))
    assert "Show set-up steps" not in words_of(lead.get(reverse("labeling:workspace")))
    details = (
        AuditEvent.objects.filter(verb="settings changed").order_by("pk").values_list("detail", flat=True)
    )
    assert [detail["set_up_hidden"]["new"] for detail in details] == [True, False]


def test_only_leads_hide_it(client: Client, author_user: User) -> None:
    client.force_login(author_user)
    assert client.post(HIDE, {"hide": ""}).status_code == 404
    assert not Workspace.objects.filter(set_up_hidden=True).exists()


def test_the_list_ends_with_the_first_report(lead: Client) -> None:
    compared = make_compared()
    assert set_up().shown
    stored_report(compared)
    assert not set_up().shown
    assert "no step is left to list" in words_of(lead.post(HIDE, {"show": ""}, follow=True))


def stored_report(compared: Compared) -> None:
    assert report_store(Scope(compared.chat_set, compared.run), share=False)


def test_authors_and_raters_of_an_empty_workspace_read_who_does_what(
    client: Client, author_user: User, rater_user: User
) -> None:
    client.force_login(author_user)
    assert "A lead imports chats and a rubric and runs the judge" in words_of(client.get("/"))
    client.force_login(rater_user)
    page = words_of(client.get("/"))
    assert "A lead imports chats and opens labelling jobs" in page
    assert "Import" not in page.replace("A lead imports", "")


def test_a_quiet_workspace_says_that_nothing_waits(lead: Client) -> None:
    stored_report(make_compared(chats=4))
    assert "No tasks for you" in words_of(lead.get("/"))
