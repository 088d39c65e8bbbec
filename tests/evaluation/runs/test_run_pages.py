"""The pages of runs and criteria: who may open them, what they say, and what they cost."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluation.models.runs import Attempt, ModelCall, Run
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.queries.runs import DEMO_VERDICTS, WEAK_JUDGE
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Rubric
from tests.factories.rows import make_criterion, make_rubric, make_set
from tests.factories.verdicts import add_verdicts, make_judge, make_run

pytestmark = pytest.mark.django_db

EMBEDDED = {"endpoint": "embedded:0f0f", "model": "smollm2"}


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear")


@pytest.fixture
def chat_set(rubric: Rubric) -> ChatSet:
    return make_set(rubric)


def pages(run: Run) -> list[str]:
    return [
        reverse("evaluation:run_list"),
        reverse("evaluation:run_detail", args=[run.pk]),
        reverse("alignment:criterion_list"),
        reverse("alignment:criterion_detail", args=["polite"]),
        reverse("api_runs"),
    ]


def queries(client: Client, url: str) -> int:
    client.get(url)  # content types and sessions are read once
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


def test_a_rater_finds_none_of_the_pages(
    client: Client, rater_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    client.force_login(rater_user)
    assert [client.get(url).status_code for url in pages(run)] == [404] * 5


def test_nobody_opens_a_page_without_signing_in(client: Client, rubric: Rubric, chat_set: ChatSet) -> None:
    run = make_run(make_judge(rubric), chat_set)
    *html, api = pages(run)
    for url in html:
        response = client.get(url)
        assert (response.status_code, response["Location"]) == (302, f"{reverse('account_login')}?next={url}")
    assert client.get(api).status_code == 403


@pytest.mark.parametrize("who", ["author_user", "lead_user"])
def test_authors_and_leads_open_every_page(
    client: Client, rubric: Rubric, chat_set: ChatSet, who: str, request: pytest.FixtureRequest
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    client.force_login(request.getfixturevalue(who))
    assert [client.get(url).status_code for url in pages(run)] == [200] * 5


@pytest.mark.parametrize("url", ["/runs/999999/", "/criteria/nothing/"])
def test_what_does_not_exist_is_404(client: Client, lead_user: User, url: str) -> None:
    client.force_login(lead_user)
    assert client.get(url).status_code == 404


@pytest.mark.parametrize(
    ("name", "next_step"),
    [("evaluation:run_list", "evaluation:run_new"), ("alignment:criterion_list", "labeling:rubric_new")],
)
def test_an_empty_workspace_says_what_to_do(
    client: Client, lead_user: User, name: str, next_step: str
) -> None:
    client.force_login(lead_user)
    assert reverse(next_step) in client.get(reverse(name)).content.decode().split("<main", 1)[1]


@pytest.mark.heavy
def test_no_page_asks_more_queries_for_4000_chats_than_for_40(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    judge = make_judge(rubric)
    run = make_run(judge, chat_set)
    add_verdicts(run, 40)
    client.force_login(lead_user)
    small = [queries(client, url) for url in pages(run)]
    add_verdicts(run, 3960)
    assert [queries(client, url) for url in pages(run)] == small
    assert max(small) <= 30


@pytest.mark.heavy
def test_lists_ask_no_more_queries_for_many_runs_and_criteria(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    client.force_login(lead_user)
    few = [queries(client, url) for url in pages(run)]
    for n in range(40):
        make_run(make_judge(rubric, name=f"judge {n}"), chat_set)
        make_criterion(f"extra_{n}", rubric=rubric)
    champions_ensure(criteria=rubric.criteria.all(), by=None)
    assert [queries(client, url) for url in pages(run)] == few


def test_run_list_shows_fifty_a_page_newest_first(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    judge = make_judge(rubric)
    runs = [make_run(judge, chat_set) for _ in range(55)]
    client.force_login(lead_user)
    first, second = (client.get(reverse("evaluation:run_list"), {"page": n}).context["runs"] for n in (1, 2))
    assert [row.id for row in (*first, *second)] == [run.pk for run in reversed(runs)]
    assert len(first) == 50


def test_run_page_shows_counts_cost_and_what_was_asked(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, calls=1234, reused=5, prompt_tokens=9000, cost_usd="1.5")
    add_verdicts(run, 20)
    client.force_login(lead_user)
    text = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    for shown in ("1,234", "$1.50", "20 of 20 units done", "2 of them unparsed", "Polite", "Clear"):
        assert shown in text
    assert reverse("alignment:report_run", args=[run.pk]) in text


def test_an_unknown_cost_is_shown_as_a_dash_and_trouble_in_words(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    trouble = "HTTP 401: <b>no</b>"
    run = make_run(make_judge(rubric), chat_set, state="done_with_failures", units_total=3, error=trouble)
    client.force_login(lead_user)
    text = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    assert "no price known" in text
    assert "$" not in text
    assert "HTTP 401: &lt;b&gt;no&lt;/b&gt;" in text


def test_only_a_running_run_asks_for_its_progress_again(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    judge = make_judge(rubric)
    client.force_login(lead_user)
    parts = {}
    for state in ("running", "done", "paused"):
        url = reverse("evaluation:run_detail", args=[make_run(judge, chat_set, state=state).pk])
        response = client.get(url, headers={"HX-Request": "true"})
        parts[state] = response.content.decode()
        assert "<html" not in parts[state]
    assert {state for state, text in parts.items() if "hx-trigger" in text} == {"running"}


def test_in_another_state_than_was_seen_the_whole_page_is_new(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="done", units_total=3)
    client.force_login(lead_user)
    url = reverse("evaluation:run_detail", args=[run.pk])
    response = client.get(f"{url}?seen=running", headers={"HX-Request": "true"})
    assert [response.headers[f"HX-{name}"] for name in ("Retarget", "Reselect", "Reswap")] == [
        "#main",
        "#main",
        "outerHTML",
    ]
    assert 'id="main"' in response.content.decode()


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_after_the_last_pending_call_of_a_stopped_run_the_whole_page_is_new(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet, state: str
) -> None:
    run = make_run(make_judge(rubric), chat_set, state=state, units_total=3)
    asked = ModelCall.objects.create(key="k", endpoint="e", model="m", role="direct", settings={}, parts=[])
    pending = Attempt.objects.create(call=asked, run=run, number=1, sent_at=timezone.now())
    client.force_login(lead_user)
    url = f"{reverse('evaluation:run_detail', args=[run.pk])}?seen={state}"
    assert "HX-Retarget" not in client.get(url, headers={"HX-Request": "true"}).headers
    pending.ended_at, pending.outcome = timezone.now(), Attempt.Outcome.ANSWERED
    pending.save()
    assert client.get(url, headers={"HX-Request": "true"}).headers["HX-Retarget"] == "#main"


def test_the_page_of_an_active_run_requests_its_other_counts_again(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running")
    client.force_login(lead_user)
    url = reverse("evaluation:run_detail", args=[run.pk])
    asked = f"{url}?part=counts"
    assert f'hx-get="{asked}"' in client.get(url).content.decode()
    assert "Missing verdicts" not in client.get(asked, headers={"HX-Request": "true"}).content.decode()
    add_verdicts(run, 20)
    part = client.get(asked, headers={"HX-Request": "true"}).content.decode()
    assert "Missing verdicts" in part and "<html" not in part and f'hx-get="{asked}"' in part
    Run.objects.filter(pk=run.pk).update(state="done")
    assert "hx-get" not in client.get(asked, headers={"HX-Request": "true"}).content.decode()


@pytest.mark.parametrize(("config", "notice"), [(EMBEDDED, WEAK_JUDGE), ({"demo": True}, DEMO_VERDICTS)])
def test_weak_and_invented_judges_are_named_as_such_on_list_and_page(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet, config: dict[str, Any], notice: str
) -> None:
    plain = make_run(make_judge(rubric), chat_set)
    client.force_login(lead_user)
    for url in pages(plain)[:2]:
        assert notice not in client.get(url).content.decode().lower()
    marked = make_run(make_judge(rubric, name="another", **config), chat_set)
    for url in pages(marked)[:2]:
        assert notice in client.get(url).content.decode().lower()


def test_runs_over_the_api_have_the_names_of_list_runs(
    client: Client, lead_user: User, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set)
    add_verdicts(run, 10)
    client.force_login(lead_user)
    row = client.get(reverse("api_runs")).json()["results"][0]
    assert (row["id"], row["set"], row["engine"], row["state"]) == (run.pk, "calibration", "direct", "done")
    assert (row["verdicts"], row["unparsed"], row["units"]) == (10, 1, 10)


@pytest.mark.parametrize("path", ["runs", "criteria"])
def test_hostile_names_are_shown_as_text(client: Client, lead_user: User, rubric: Rubric, path: str) -> None:
    script = "<script>alert(1)</script>"
    Rubric.objects.update(name=script)
    make_run(make_judge(rubric, name=script), make_set(rubric, name=script))
    client.force_login(lead_user)
    text = client.get(f"/{path}/").content.decode()
    assert script not in text
    assert "&lt;script&gt;alert(1)" in text
