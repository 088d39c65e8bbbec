"""The messages above empty and incomplete reports."""

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label
from tests.factories.compared_runs import Compared, urls
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db


def test_a_part_without_chats_says_so_and_leads_back_to_all(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"] + "?since=2001-01-01&until=2001-01-02&against=each-rater")
    assert "No chats match" in words_of(page)
    assert page.context["headline"] == "No chats to compare."
    assert "Next step" not in words_of(page)
    assert page.context["empty_state"].url == "?against=each-rater"


@pytest.mark.parametrize(
    ("without_time", "query", "text"),
    [
        (range(1, 41), "?since=2026-05-01", "40 chats have no start time."),
        (
            [5],
            "?since=2026-07-01",
            "No chat has this split, topic and period. 1 chat has no start time.",
        ),
        ([], "?until=2026-05-01", "No chat has this split, topic and period."),
    ],
)
def test_a_part_without_chats_says_how_many_have_no_start_time(
    compared: Compared, lead: Client, without_time: list[int], query: str, text: str
) -> None:
    Chat.objects.update(started_at=datetime(2026, 6, 1, tzinfo=UTC))
    Chat.objects.filter(external_id__in=[f"chat-{n}" for n in without_time]).update(started_at=None)
    assert lead.get(urls(compared)["report"] + query).context["empty_state"].text == text


def test_an_author_reads_that_the_holdout_is_for_leads(compared: Compared, author: Client) -> None:
    held = RunChat.objects.filter(run=compared.run, split="holdout")
    RunChat.objects.filter(pk__in=held.values("pk")[7:]).delete()
    state = author.get(urls(compared)["report"] + "?split=holdout").context["empty_state"]
    assert state.text == "Fewer than 10 holdout chats: only leads see their results."


def test_the_splits_offered_are_those_with_chats_and_the_one_asked_for(
    compared: Compared, lead: Client
) -> None:
    def offered(query: str = "") -> list[str]:
        filters = lead.get(urls(compared)["report"] + query).context["filters"]
        return next([one["value"] for one in row["options"]] for row in filters if row["name"] == "split")

    assert offered() == ["", "train", "dev", "holdout"]
    RunChat.objects.filter(run=compared.run).exclude(split="dev").delete()
    assert offered() == offered("?split=dev") == ["", "dev"]
    assert offered("?split=train") == ["", "train", "dev"]


def test_a_run_that_goes_on_shows_how_far_it_is(compared: Compared, lead: Client) -> None:
    Run.objects.update(state=Run.State.RUNNING, finished_at=None, units_total=40, units_done=11)
    shown = words_of(lead.get(urls(compared)["report"]))
    assert "Run in progress" in shown
    assert "11 of 40 done" in shown


def test_chats_without_labels_lead_a_lead_to_the_plan(
    compared: Compared, lead: Client, author: Client
) -> None:
    Consensus.objects.all().delete()
    Label.objects.all().delete()
    state = lead.get(urls(compared)["report"]).context["empty_state"]
    assert (state.title, state.action) == ("No labels yet", "Plan labels")
    assert author.get(urls(compared)["report"]).context["empty_state"].url == ""


def test_verdicts_of_which_none_could_be_read_lead_to_the_run(compared: Compared, lead: Client) -> None:
    Verdict.objects.update(state=Verdict.State.UNPARSED, value=None)
    state = lead.get(urls(compared)["report"]).context["empty_state"]
    assert state.title == "No verdicts to compare"
    assert state.url == reverse("evaluation:run_detail", args=[compared.run.pk])


def test_a_set_without_a_judge_offers_a_run_and_one_with_a_judge_its_report(
    compared: Compared, lead: Client, author: Client
) -> None:
    url = urls(compared)["set"]
    assert [one["url"] for one in lead.get(url).context["others"]] == [urls(compared)["report"]]
    Run.objects.update(purpose=Run.Purpose.TRY)
    state = lead.get(url).context["empty_state"]
    assert state.url == f"{reverse('evaluation:run_new')}?set={compared.chat_set.pk}"
    assert author.get(url).context["empty_state"].url == ""
