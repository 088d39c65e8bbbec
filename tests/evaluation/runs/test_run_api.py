"""API of runs: start, read, pause, resume, cancel; permissions, errors by field, number of queries."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Attempt, Run
from evaluation.runs.worker.enqueue import runs_waiting_in_queue
from evaluation.tasks import process_units
from labeling.models.people import User
from tests.factories.runs import always, answering, workspace
from tests.factories.workers import launched, purge_tasks
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    purge_tasks()
    with answering(settings, always(True)) as stub:
        yield stub


@pytest.fixture
def lead(lead_user: User, stub: StubEndpoint) -> Client:
    workspace("polite", "short", chats=3)
    return signed_in(lead_user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def start(client: Client, **body: Any) -> Any:
    fields = {"set": "calibration", "engine": "direct"} | body
    chosen = {name: value for name, value in fields.items() if value is not None}
    return client.post(reverse("api_runs"), chosen, content_type="application/json")


def act(client: Client, run_id: int, action: str) -> Any:
    return client.post(reverse(f"api_run_{action}", args=[run_id]), content_type="application/json")


def look(client: Client, run_id: int) -> Any:
    return client.get(reverse("api_run", args=[run_id]))


def test_a_budget_without_a_price_is_refused_and_no_run_is_planned(lead: Client) -> None:
    answer = start(lead, budget_usd="1.50")
    assert answer.status_code == 400
    assert "the operator of this server can add it to the price file" in str(answer.json())
    assert not Run.objects.exists()


def test_a_started_run_is_accepted_with_its_id_and_enqueued(lead: Client, lead_user: User) -> None:
    answer = start(lead, limit=2, criteria=["polite"], max_in_flight=3, audit=0.1)
    assert answer.status_code == 202, answer.json()
    run = Run.objects.get(pk=answer.json()["id"])
    assert answer.json() == {"id": run.pk, "state": "running", "units": 2}
    assert (run.started_by, run.options["max_in_flight"]) == (lead_user, 3)
    assert runs_waiting_in_queue() == 1


def test_a_request_that_is_sent_again_starts_no_second_run(lead: Client) -> None:
    first, other = "3f2c1c0e-0000-4000-8000-000000000001", "3f2c1c0e-0000-4000-8000-000000000002"
    started, again = start(lead, client_id=first), start(lead, client_id=first)
    assert (started.status_code, again.status_code) == (202, 200)
    assert again.json() == started.json()
    assert start(lead, client_id=other).status_code == 202
    assert Run.objects.count() == 2


def test_a_run_shows_its_progress(lead: Client) -> None:
    run_id = start(lead).json()["id"]
    waiting = look(lead, run_id).json()
    assert (waiting["state"], waiting["units"], waiting["units_done"], waiting["in_flight"]) == (
        "running",
        3,
        0,
        0,
    )
    assert (waiting["seconds_left"], waiting["set"], waiting["engine"]) == (None, "calibration", "direct")
    process_units(run_id)
    done = look(lead, run_id).json()
    assert (done["state"], done["units_done"], done["calls"], done["units_failed"]) == ("done", 3, 3, 0)
    assert done["rate"] > 0
    assert done["cost_usd"] is None  # no price file


def test_a_request_in_progress_is_counted(lead: Client) -> None:
    run_id = start(lead).json()["id"]
    process_units(run_id)
    Attempt.objects.filter(pk=Attempt.objects.latest("id").pk).update(ended_at=None)
    assert look(lead, run_id).json()["in_flight"] == 1


def test_the_body_overrides_the_profiles_recipe(lead: Client) -> None:
    JudgeProfile.objects.create(name="Careful", config=spec_to_json(JudgeSpec("reflection", model="big")))
    run_id = start(lead, engine=None, profile="Careful", model="bigger").json()["id"]
    run = Run.objects.select_related("judge").get(pk=run_id)
    assert (run.judge.engine, run.judge.model) == ("reflection", "bigger")


def test_a_run_is_paused_resumed_and_cancelled(lead: Client, lead_user: User) -> None:
    run_id = start(lead).json()["id"]
    paused = act(lead, run_id, "pause")
    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    assert paused.json()["error"] == f"paused by {lead_user.username}"
    assert act(lead, run_id, "resume").json()["state"] == "running"
    assert act(lead, run_id, "cancel").json()["state"] == "cancelled"
    refused = act(lead, run_id, "resume")
    assert refused.status_code == 409
    assert refused.json() == {"detail": f"run {run_id} is cancelled: it cannot be resumed"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"set": "nowhere"}, "set"),
        ({"set": None}, "set"),
        ({"engine": None}, "engine"),
        ({"engine": "oracle"}, "engine"),
        ({"profile": "nobody's"}, "profile"),
        ({"criteria": ["no_such_key"]}, "criteria"),
        ({"criteria": []}, "criteria"),
        ({"split": "attic"}, "split"),
        ({"limit": 0}, "limit"),
        ({"samples": 10}, "samples"),
        ({"samples": 1.5}, "samples"),
        ({"grouping": "alphabet"}, "grouping"),
        ({"knowledge": "gut feeling"}, "knowledge"),
        ({"replicate": -1}, "replicate"),
        ({"budget_usd": "-1"}, "budget_usd"),
        ({"mode": "teleport"}, "mode"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"temperatures": {"king": 1}}, "temperatures.king"),
        ({"windows": {"overlap": 3}}, "windows"),
        ({"samplse": 3}, "samplse"),
        ({"split": "holdout"}, "detail"),
        ({"budget_usd": "1"}, "detail"),  # no price file
    ],
)
def test_invalid_input_is_refused_by_field_and_no_run_is_planned(
    lead: Client, body: dict[str, Any], field: str
) -> None:
    answer = start(lead, **body)
    assert answer.status_code == 400, answer.json()
    assert list(answer.json()) == [field]
    assert not Run.objects.exists()


def test_controlling_runs_requires_start_runs_and_reading_them_see_judge(
    lead: Client, author_user: User, rater_user: User
) -> None:
    run_id = start(lead).json()["id"]
    author, rater = signed_in(author_user), signed_in(rater_user)
    assert (look(author, run_id).status_code, look(rater, run_id).status_code) == (200, 404)
    assert (start(author).status_code, start(rater).status_code) == (404, 404)
    for action in ("pause", "resume", "cancel"):
        assert act(author, run_id, action).status_code == act(rater, run_id, action).status_code == 404
    assert look(lead, run_id + 1).status_code == act(lead, run_id + 1, "pause").status_code == 404
    assert Run.objects.get().state == "running"


@pytest.mark.heavy
def test_the_number_of_queries_does_not_grow_with_the_run(lead: Client, stub: StubEndpoint) -> None:
    small = start(lead, limit=1).json()["id"]
    large = launched(Run.objects.get().chat_set, replicate=1).pk
    process_units(small)
    process_units(large)
    counts = []
    for run_id in (small, large):
        with CaptureQueriesContext(connection) as queries:
            look(lead, run_id)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_schema_names_every_operation_of_runs(client: Client, lead_user: User) -> None:
    client.force_login(lead_user)
    schema = client.get("/api/schema/", {"format": "json"}).json()
    operations = {
        act["operationId"]
        for path in schema["paths"].values()
        for act in path.values()
        if "operationId" in act
    }
    assert {"runs", "run_start", "run", "run_pause", "run_resume", "run_cancel"} <= operations
