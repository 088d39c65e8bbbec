"""What leads can do with runs from the pages, how the list is narrowed, what the run page explains."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from evaluation.gateway.current import current_endpoint
from evaluation.models.judges import Judge
from evaluation.models.runs import Batch, Run, Unit, Verdict
from evaluation.runs.worker.leases import lease_begin
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Rubric
from tests.factories.rows import make_chat, make_rubric, make_set
from tests.factories.runs import always, answering, evaluate, the_run, workspace
from tests.factories.verdicts import add_verdicts, make_judge, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear")


@pytest.fixture
def chat_set(rubric: Rubric) -> ChatSet:
    return make_set(rubric)


# ---------- what can be done with a run ----------

ACTS = {"running": {"pause", "cancel"}, "paused": {"resume", "cancel"}, "done_with_failures": {"resume"}}


@pytest.mark.parametrize("state", [*ACTS, "done", "cancelled"])
def test_a_lead_is_offered_what_the_state_allows(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet, state: str
) -> None:
    run = make_run(make_judge(rubric), chat_set, state=state, units_total=3)
    client.force_login(lead_user)
    text = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    offered = {act for act in ("pause", "resume", "cancel") if f'action="/runs/{run.pk}/{act}/"' in text}
    assert offered == ACTS.get(state, set())


def test_pause_resume_and_cancel_from_the_page(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(
        make_judge(rubric, endpoint=current_endpoint().id), chat_set, state="running", units_total=3
    )
    Unit.objects.create(run=run, chat=make_chat(), group=0)
    client.force_login(lead_user)
    states = []
    for act in ("pause", "resume", "cancel"):
        response = client.post(reverse("evaluation:run_act", args=[run.pk, act]))
        assert response.headers["Location"] == reverse("evaluation:run_detail", args=[run.pk])
        run.refresh_from_db()
        states.append(run.state)
    assert states == ["paused", "running", "cancelled"]


def test_what_a_state_does_not_allow_is_refused_in_words(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="done")
    client.force_login(lead_user)
    url = reverse("evaluation:run_act", args=[run.pk, "cancel"])
    assert "cannot be cancelled" in client.post(url, follow=True).content.decode()
    run.refresh_from_db()
    assert run.state == "done"


@pytest.mark.parametrize("who", ["rater_user", "author_user"])
def test_only_leads_control_runs(
    client: Client, rubric: Rubric, chat_set: ChatSet, who: str, request: pytest.FixtureRequest
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running", units_total=3)
    client.force_login(request.getfixturevalue(who))
    for act in ("pause", "resume", "cancel"):
        assert client.post(reverse("evaluation:run_act", args=[run.pk, act])).status_code == 404
    assert f'action="/runs/{run.pk}/' not in client.get("/runs/").content.decode()
    run.refresh_from_db()
    assert run.state == "running"


def test_a_strange_act_is_not_found_and_no_act_is_a_get(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running")
    client.force_login(lead_user)
    assert client.post(reverse("evaluation:run_act", args=[run.pk, "explode"])).status_code == 404
    assert client.get(reverse("evaluation:run_act", args=[run.pk, "pause"])).status_code == 405


# ---------- the list, narrowed ----------


def listed(client: Client, **only: str) -> set[int]:
    return {row.id for row in client.get(reverse("evaluation:run_list"), only).context["runs"]}


def test_the_address_narrows_the_list_by_state_set_and_engine(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    other = make_set(rubric, name="other")
    judge, outside = make_judge(rubric), make_judge(rubric, name="outside")
    Judge.objects.filter(pk=outside.pk).update(engine="")
    paused = make_run(judge, chat_set, state="paused").pk
    done = make_run(judge, other).pk
    imported = make_run(outside, other).pk
    client.force_login(lead_user)
    assert listed(client, state="paused") == {paused}
    assert listed(client, set=str(other.pk)) == {done, imported}
    assert listed(client, engine="outside") == {imported}
    assert listed(client, engine="direct", set=str(other.pk)) == {done}
    assert listed(client, state="nonsense", set="x", engine="y") == {paused, done, imported}
    assert listed(client, set="9" * 40) == {paused, done, imported}


def test_a_list_narrowed_to_nothing_leads_back_to_all(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    make_run(make_judge(rubric), chat_set)
    client.force_login(lead_user)
    text = client.get(reverse("evaluation:run_list"), {"state": "paused"}).content.decode()
    assert "No matching runs" in text
    assert "Show all runs" in text


@pytest.mark.parametrize(("who", "offered"), [("lead_user", True), ("author_user", False)])
def test_only_leads_are_offered_to_start_a_run(
    client: Client, who: str, offered: bool, request: pytest.FixtureRequest
) -> None:
    client.force_login(request.getfixturevalue(who))
    assert (reverse("evaluation:run_new") in client.get("/runs/").content.decode()) is offered


# ---------- what the run page explains ----------


def test_verdicts_without_an_answer_are_counted_under_their_names(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    add_verdicts(run, 20)
    client.force_login(lead_user)
    (row,) = client.get(reverse("evaluation:run_detail", args=[run.pk])).context["missing"]
    assert (row.state, row.verdicts) == ("unparsed", 2)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        ("the budget of $1 is reached", "Resume with a larger budget"),
        (
            "a budget needs a price for 'm': add it to the price file",
            "add the model&#x27;s price",
        ),
        ("HTTP 401: key refused", "check the endpoint&#x27;s key"),
        ("run 7 began at x, but the server is set to y", "set this judge&#x27;s endpoint"),
        ("paused by ines", "Resume to continue"),
    ],
)
def test_a_paused_run_says_the_next_step(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet, error: str, step: str
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="paused", units_total=3, error=error)
    client.force_login(lead_user)
    assert step in client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()


def test_a_running_run_without_a_worker_says_so(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running", units_total=3)
    client.force_login(lead_user)
    assert "No worker is running" in client.get(f"/runs/{run.pk}/").content.decode()


def test_imported_verdicts_took_no_time_and_have_nothing_to_control(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, purpose="import", finished_at=timezone.now())
    client.force_login(lead_user)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Imported" in page
    assert "Duration" not in page
    assert f'action="/runs/{run.pk}/' not in page


def test_a_run_that_has_to_wait_says_for_what(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running", units_total=3, mode="batch")
    client.force_login(lead_user)

    def page() -> str:
        return client.get(f"/runs/{run.pk}/").content.decode()

    Run.objects.filter(pk=run.pk).update(rung_at=timezone.now())
    assert "Waits for a free worker" in page()
    Run.objects.filter(pk=run.pk).update(rung_at=timezone.now() - timedelta(minutes=5))
    assert "No worker is running" in page()
    lease_begin(make_run(make_judge(rubric, name="other"), chat_set, state="running").pk)
    assert "Waits for a free worker" in page()
    Batch.objects.create(run=run, endpoint="e", batch_id="b")
    assert "The endpoint is processing the batches" in page()


def test_the_engine_statistics_of_a_debate_are_on_the_page(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    add_verdicts(run, 10)
    read = list(Verdict.objects.filter(run=run, state="read").values_list("pk", flat=True))
    Verdict.objects.filter(pk__in=read[:6]).update(sided_with="customer")
    Verdict.objects.filter(pk__in=read[6:]).update(sided_with="support")
    client.force_login(lead_user)
    engine = reverse("evaluation:run_engine", args=[run.pk])
    with CaptureQueriesContext(connection) as queries:
        page = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    # Counting takes seconds over many verdicts: the page comes without, and asks for it.
    assert f'hx-get="{engine}"' in page
    assert 'hx-trigger="load"' in page
    assert not [query for query in queries.captured_queries if "flags" in query["sql"]]
    text = client.get(engine).content.decode()
    assert "<html" not in text
    assert "Sided with the critic" in text
    assert "6 of 9 debates" in text


def test_a_run_that_was_imported_has_no_engine_to_count(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    judge = make_judge(rubric)
    type(judge).objects.filter(pk=judge.pk).update(kind="imported")
    run = make_run(judge, chat_set)
    add_verdicts(run, 3)
    client.force_login(lead_user)
    page = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    assert reverse("evaluation:run_engine", args=[run.pk]) not in page


@pytest.mark.django_db(transaction=True)
def test_the_ledger_of_a_real_run_adds_up_on_the_page(
    client: Client, lead_user: User, settings: Settings
) -> None:
    workspace("polite", "clear", chats=2)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "debate")
    client.force_login(lead_user)
    page = client.get(reverse("evaluation:run_detail", args=[the_run().pk]))
    assert page.context["ledger"].total.calls == 6
    assert [(row.name, row.requests) for row in page.context["outcomes"]] == [("Answered", 6)]
    for role in ("Customer critic", "Support defender", "Judge"):
        assert role in page.content.decode()
