"""The list of reports: the status of each run's criteria, from stored reports."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.models.reports import Report
from alignment.reports.queries.report_list import RunStatus
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, add_chats, share_report, text_of
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db

LIST = reverse("alignment:report_list")


@pytest.fixture
def four(compared: Compared) -> Compared:
    """Of four criteria one is aligned, one is not, one has no human False, one is subjective."""
    add_chats(compared, to=140)
    Run.objects.update(finished_at=timezone.now())
    Verdict.objects.filter(criterion__key="polite").update(value=True)
    return compared


def status(client: Client, run: Run, query: str = "") -> RunStatus:
    rows = client.get(LIST + query).context["runs"]
    found: RunStatus = next(row["status"] for row in rows if row["row"].id == run.pk)
    return found


def again(compared: Compared) -> Run:
    """Another finished run, with one verdict."""
    judge = Judge.objects.create(fingerprint=f"{Judge.objects.count():064}", name="another", config={})
    run = Run.objects.create(
        judge=judge, chat_set=compared.chat_set, state=Run.State.DONE, finished_at=timezone.now()
    )
    chat, criterion = compared.chat(1), compared.criteria[0]
    RunChat.objects.create(run=run, chat=chat, split="dev")
    Verdict.objects.create(
        run=run, chat=chat, criterion=criterion, state="read", value=True, stored_at=timezone.now()
    )
    return run


def test_a_row_counts_the_criteria_of_each_status_in_words(four: Compared, lead: Client) -> None:
    share_report(lead, four)
    assert status(lead, four.run).chips == (
        ("aligned", "1 aligned"),
        ("not", "1 not aligned"),
        ("few", "1 too few labels"),
    )
    shown = words_of(lead.get(LIST))
    for words in ("1 aligned", "1 not aligned", "1 too few labels"):
        assert words in shown


def test_a_subjective_criterion_counts_as_directional_whatever_its_status(
    four: Compared, lead: Client
) -> None:
    Criterion.objects.filter(key="polite").update(tier="subjective")
    share_report(lead, four)
    assert status(lead, four.run).chips[-1] == ("dir", "1 directional")
    assert ("not", "1 not aligned") not in status(lead, four.run).chips


def test_a_list_computes_no_report_and_says_why_a_row_has_no_status(four: Compared, lead: Client) -> None:
    assert status(lead, four.run) == RunStatus(reason="Not computed yet")
    assert not Report.objects.filter(kind=Report.Kind.REPORT).exists()
    assert "Not computed yet" in text_of(lead.get(LIST))
    Run.objects.update(state=Run.State.RUNNING, finished_at=None)
    assert status(lead, four.run) == RunStatus(reason="Run in progress")


def test_parts_of_a_run_say_nothing_of_the_whole(four: Compared, lead: Client) -> None:
    for query in ("?split=dev", "?against=rater%3Acleo", "?topic=delivery"):
        share_report(lead, four, query)
    assert status(lead, four.run).chips == ()


def test_after_a_label_the_row_says_that_its_status_is_of_before(four: Compared, lead: Client) -> None:
    share_report(lead, four)
    assert not status(lead, four.run).changed
    Consensus.objects.filter(chat=four.chat(1)).update(state=Consensus.State.UNRESOLVED)
    Criterion.objects.filter(key="polite").update(labels_seq=9)
    was = status(lead, four.run)
    assert was.changed and was.chips
    assert "Labels, texts or rules have changed since" in text_of(lead.get(LIST))
    share_report(lead, four)
    assert not status(lead, four.run).changed


def test_authors_do_not_see_the_holdouts_counts_in_the_list(
    four: Compared, lead: Client, author: Client
) -> None:
    """Each report decides which holdout results an author sees."""
    share_report(lead, four)
    page = author.get(LIST)
    assert all(row["status"] is None for row in page.context["runs"])
    assert "Criteria" not in text_of(page).split("<table")[1]


def test_a_cancelled_run_says_how_far_it_came(four: Compared, lead: Client) -> None:
    Run.objects.update(state=Run.State.CANCELLED, units_total=130, units_done=3)
    assert "Cancelled: 3 of 130" in words_of(lead.get(LIST))
    assert "Run cancelled: 3 of 130" in words_of(
        lead.get(reverse("alignment:report_run", args=[four.run.pk]))
    )


def test_test_runs_are_listed_apart(four: Compared, lead: Client) -> None:
    test = again(four)
    Run.objects.filter(pk=test.pk).update(purpose=Run.Purpose.CONFIRM)
    listed = {
        query: [row["row"].id for row in lead.get(LIST + query).context["runs"]]
        for query in ("", "?purpose=tests", "?purpose=nonsense")
    }
    assert listed == {"": [four.run.pk], "?purpose=tests": [test.pk], "?purpose=nonsense": [four.run.pk]}


def test_a_plans_nights_are_listed_only_where_their_set_is_chosen(four: Compared, lead: Client) -> None:
    night = again(four)
    sample = ChatSet.objects.create(
        name="Every night 2026-11-02", kind="sample", rubric=four.chat_set.rubric, sampling={"plan": 1}
    )
    Run.objects.filter(pk=night.pk).update(chat_set=sample)
    listed = {
        query: [row["row"].id for row in lead.get(LIST + query).context["runs"]]
        for query in ("", f"?set={sample.pk}")
    }
    assert listed == {"": [four.run.pk], f"?set={sample.pk}": [night.pk]}


@pytest.mark.heavy
def test_the_list_asks_as_many_queries_for_one_run_as_for_many(four: Compared, lead: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert lead.get(LIST).status_code == 200
        return len(caught)

    share_report(lead, four)
    queries()
    first = queries()
    for run in [again(four) for _ in range(5)]:
        lead.post(reverse("alignment:report_share_run", args=[run.pk]))
        assert status(lead, run).chips == (("few", "1 too few labels"),)
    assert queries() == first
