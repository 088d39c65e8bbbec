"""The pages of models: what is known of each, what a lead sets, and the test that a worker runs."""

import re

import pytest
from django.test import Client
from pytest_django import Settings

from evaluation.endpoints.queries import model_profile
from evaluation.endpoints.services import model_learn
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.model_tests.worker import STEPS
from evaluation.models.judges import EndpointModel, JudgeProfile
from evaluation.tasks import test_model as model_test_task
from labeling.models.people import Role
from tests.factories.model_tests import good, knowing
from tests.factories.rows import make_user
from tests.factories.runs import MODEL, answering

pytestmark = pytest.mark.django_db(transaction=True)
OPENAI = "https://api.openai.com/v1"


@pytest.fixture
def lead() -> Client:
    client = Client()
    client.force_login(make_user("lead", Role.LEAD))
    return client


@pytest.fixture
def author() -> Client:
    client = Client()
    client.force_login(make_user("author", Role.AUTHOR))
    return client


def openai(settings: Settings) -> None:
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = OPENAI, "k"


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_the_list_shows_models_in_use_with_profile_price_and_source(settings: Settings, lead: Client) -> None:
    openai(settings)
    profile_save(name="Strong", choice=JudgeSpec("direct", model="o3"), profile=None)
    text = text_of(lead, "/models/")
    assert "o3 Test o3 yes max_completion_tokens 200,000 json_schema $2.00 $8.00 genai-prices" in text
    assert "Strong: First pass" in text
    assert "gpt-4.1-mini" in text and "Strong: Formatter" in text


def test_a_lead_sets_fields_and_an_empty_field_leaves_them_to_what_is_known(
    settings: Settings, lead: Client
) -> None:
    openai(settings)
    row = EndpointModel.objects.create(endpoint=OPENAI, model="my-deployment")
    chosen = {"reasons": "yes", "room": "9000", "efforts": "low, high"}
    lead.post(f"/models/{row.pk}/set/", {**chosen, "extra": '{"enable_thinking": true}'})
    profile = model_profile(endpoint=OPENAI, model="my-deployment")
    assert (profile.reasons, profile.room, profile.extra) == (True, 9000, {"enable_thinking": True})
    assert profile.nearest_effort("medium") == "high"
    assert 'value="low, high"' in lead.get(f"/models/{row.pk}/").content.decode()
    assert profile.source("room") == "workspace"
    lead.post(f"/models/{row.pk}/set/", {"reasons": "no"})
    profile = model_profile(endpoint=OPENAI, model="my-deployment")
    assert (profile.reasons, profile.room, profile.extra) == (False, None, {})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("room", "0", "greater than or equal to 1"),
        ("efforts", "low, extreme", "must list some of none, minimal, low"),
        ("extra", "[1]", "must be an object"),
        ("extra", "{", "Enter a JSON object"),
        ("extra", '{"messages": []}', "must not set messages"),
    ],
)
def test_a_wrong_setting_is_named_at_its_field_and_nothing_is_written(
    settings: Settings, lead: Client, field: str, value: str, words: str
) -> None:
    openai(settings)
    row = EndpointModel.objects.create(endpoint=OPENAI, model="m", chosen={"seed": False})
    answer = lead.post(f"/models/{row.pk}/set/", {field: value, "seed": "yes"})
    assert words in answer.content.decode()
    assert "Not saved" in answer.content.decode()
    row.refresh_from_db()
    assert row.chosen == {"seed": False}


def test_what_was_learned_can_be_forgotten(settings: Settings, lead: Client) -> None:
    openai(settings)
    model_learn(endpoint=OPENAI, model="m", changes={"temperature": False})
    row = EndpointModel.objects.get()
    assert "Takes temperature no learned" in text_of(lead, f"/models/{row.pk}/")
    lead.post(f"/models/{row.pk}/forget/")
    assert model_profile(endpoint=OPENAI, model="m").temperature is None


def test_a_test_started_on_the_page_is_run_by_a_worker_and_its_table_shown(
    settings: Settings, lead: Client
) -> None:
    with answering(settings, knowing(good)):
        page = lead.post("/models/test/", {"model": MODEL})
        row = EndpointModel.objects.get()
        assert page["Location"] == f"/models/{row.pk}/"
        assert f"0 of {STEPS} steps" in text_of(lead, f"/models/{row.pk}/")
        model_test_task(row.pk, row.tests)
    text = text_of(lead, f"/models/{row.pk}/")
    assert "10 of 12 checks pass, 1 needs a setting" in text
    assert "by lead" in text
    assert "Known answers 20 of 20 right Pass" in text
    assert "10 of 12 passed" in text_of(lead, "/models/")


def test_a_message_for_a_test_that_was_replaced_does_nothing(settings: Settings) -> None:
    with answering(settings, knowing(good)) as stub:
        row = EndpointModel.objects.create(endpoint=OPENAI, model=MODEL, tests=2)
        model_test_task(row.pk, 1)
        model_test_task(row.pk, 2)  # not in work
        assert not stub.requests


def test_a_second_start_while_a_test_is_in_work_is_refused(settings: Settings, lead: Client) -> None:
    with answering(settings, knowing(good)):
        lead.post("/models/test/", {"model": MODEL})
        answer = lead.post("/models/test/", {"model": MODEL}, follow=True)
    assert f"Not tested: a test of {MODEL} is in work." in answer.content.decode()
    assert EndpointModel.objects.get().tests == 1


def test_the_run_form_and_the_profile_say_what_to_know_of_the_models(
    settings: Settings, lead: Client
) -> None:
    openai(settings)
    profile = JudgeProfile.objects.create(
        name="Deep",
        config={"engine": "direct", "model": "o3", "formatter": "o3", "temperatures": {"direct": 0.2}},
    )
    text = text_of(lead, f"/profiles/{profile.pk}/")
    assert "Model o3 takes no temperature: 0.2 is not sent for the role First pass" in text
    assert "the formatter only copies verdicts: choose a cheaper formatter model" in text
    assert "Model o3 was never tested here: run its model test first" in text
    EndpointModel.objects.create(endpoint=OPENAI, model="o3", tested_at="2026-11-01T00:00Z")
    assert "never tested" not in text_of(lead, f"/profiles/{profile.pk}/")


def test_an_unreadable_price_file_is_named_on_the_list(settings: Settings, lead: Client) -> None:
    openai(settings)
    settings.LACE_PRICES = "/nowhere/prices.json"
    assert "/nowhere/prices.json: cannot be read" in text_of(lead, "/models/")
