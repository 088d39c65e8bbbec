"""What lists say of a run: state, coverage, and counts that are taken once, when it ends."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from evaluation.models.runs import Run, Verdict
from evaluation.runs.queries.runs import run_list, run_rows
from evaluation.runs.services.control import run_cancel, run_pause
from evaluation.runs.worker.execute import run_reopen
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Rubric
from tests.factories.page_text import words_of
from tests.factories.rows import make_rubric, make_set
from tests.factories.runs import always, answering, evaluate, workspace
from tests.factories.verdicts import add_verdicts, make_judge, make_run

pytestmark = pytest.mark.django_db

LIST = reverse("evaluation:run_list")


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear")


@pytest.fixture
def chat_set(rubric: Rubric) -> ChatSet:
    return make_set(rubric)


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


@pytest.mark.parametrize(
    ("state", "done", "standing"),
    [
        ("done", 130, "Done"),
        ("done_with_failures", 128, "Done with failures: 128 of 130"),
        ("cancelled", 3, "Cancelled: 3 of 130"),
        ("paused", 3, "Paused: 3 of 130"),
        ("running", 1, "Running: 1 of 130"),
    ],
)
def test_a_run_says_its_state_and_how_far_it_came(
    lead: Client, rubric: Rubric, chat_set: ChatSet, state: str, done: int, standing: str
) -> None:
    run = make_run(make_judge(rubric), chat_set, state=state, units_total=130, units_done=done)
    assert run.standing == standing
    pages = (LIST, reverse("evaluation:run_detail", args=[run.pk]))
    assert all(standing in words_of(lead.get(page)) for page in pages)


def test_a_cancelled_run_does_not_say_that_no_verdict_is_missing(
    lead: Client, rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="cancelled")
    add_verdicts(run, 3)
    Run.objects.update(units_total=130)
    page = words_of(lead.get(reverse("evaluation:run_detail", args=[run.pk])))
    assert "127 of 130 units were never judged." in page
    assert "127 not judged" in page
    assert "No verdict is missing" not in page
    assert "none missing" not in page


def test_test_runs_and_tries_are_listed_apart(lead: Client, rubric: Rubric, chat_set: ChatSet) -> None:
    judge = make_judge(rubric)
    runs = {purpose: make_run(judge, chat_set, purpose=purpose).pk for purpose in Run.Purpose.values}

    def listed(query: str) -> set[int]:
        return {row.id for row in lead.get(LIST + query).context["runs"]}

    assert listed("") == {runs["evaluation"], runs["import"]}
    assert listed("?purpose=tests") == {runs["regression"], runs["confirm"], runs["noise"]}
    assert listed("?purpose=tries") == {runs["try"]}
    assert listed("?purpose=confirm") == {runs["confirm"]}
    assert 'href="?purpose=tests" aria-current="page"' in lead.get(LIST + "?purpose=confirm").content.decode()


@pytest.mark.django_db(transaction=True)
def test_verdicts_are_counted_when_the_run_ends(settings: Settings) -> None:
    workspace("polite", chats=2)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
    run = run_list().get()
    assert run.verdict_counts == {"all": 2, "unparsed": 0, "no_verdict": 0}
    with CaptureQueriesContext(connection) as captured:
        (row,) = run_rows([run])
    assert (row.verdicts, len(captured)) == (2, 0)


def test_a_run_that_is_cancelled_keeps_its_counts_and_one_that_goes_on_has_none(
    rubric: Rubric, chat_set: ChatSet
) -> None:
    run = make_run(make_judge(rubric), chat_set, state="running")
    add_verdicts(run, 10)
    paused = run_pause(run=run, by=None)
    assert paused.verdict_counts is None
    assert run_rows([paused])[0].verdicts == 10
    cancelled = run_cancel(run=paused, by=None)
    assert cancelled.verdict_counts == {"all": 10, "unparsed": 1, "no_verdict": 1}
    Verdict.objects.filter(run=run).delete()
    assert run_rows([cancelled])[0].verdicts == 10
    Run.objects.filter(pk=run.pk).update(state="done_with_failures")
    run.refresh_from_db()
    assert run_reopen(run).verdict_counts is None
