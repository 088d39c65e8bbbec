"""One chat of a regression test: labels, champion and candidate."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.people import Role
from tests.factories.compared_runs import JUDGE, Compared, add_chats, text_of
from tests.factories.rater_quality import polite
from tests.factories.regression_tests import DecidedTest, candidate_says, make_tested
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    return make_tested(compared)


def words(client: Client, url: str) -> str:
    shown = " ".join(re.sub(r"<[^>]+>", " ", text_of(client.get(url))).split())
    return shown.replace(" ,", ",")


def test_it_shows_the_chat_the_labels_and_both_verdicts_with_their_rationales(
    tested: DecidedTest, lead: Client
) -> None:
    page = words(lead, tested.chat_url(7))
    assert "Where is order 7?" in page
    for rater in ("anna", "ben", "cleo"):
        assert f"{rater} on polite: see m2" in page
    champion, candidate = tested.test.baseline_run_id, tested.test.candidate_run_id
    assert f"Champion True right full evaluation, run {champion}" in page
    assert f"Candidate False wrong: false alarm full evaluation, run {candidate}" in page
    assert f"Run {champion} on chat 7: " in page
    assert f"Run {candidate} on chat 7: " in page
    assert "Broken" in page


def test_the_turns_that_rationales_and_raters_cite_are_links_into_the_chat(
    tested: DecidedTest, lead: Client
) -> None:
    page = text_of(lead.get(tested.chat_url(7)))
    assert page.count('href="#m2"') == 1 + 2 + 3  # the turn itself, two rationales, three raters
    assert re.search(r'class="turn [^"]*picked cited" id="m2"', page)


def test_each_run_is_a_click_away(tested: DecidedTest, lead: Client) -> None:
    page = lead.get(tested.chat_url(7))
    for judge in page.context["judges"]:
        assert f'href="{judge.url}"' in text_of(page)
        assert lead.get(judge.url).status_code == 200


def test_prompt_versions_are_named(tested: DecidedTest, lead: Client) -> None:
    version = PromptVersion.objects.get(criterion=polite(), number=2)
    asked = {"criterion": polite(), "criterion_version": polite().versions.get(), "group": 0}
    JudgePrompt.objects.create(judge=tested.compared.run.judge, prompt_version=version, **asked)
    tested.compared.run.judge.config = {"groups": [{"engine": "direct"}]}
    tested.compared.run.judge.save()
    assert "Prompt version 2, full evaluation" in words(lead, tested.chat_url(7))


def test_the_answer_of_a_repeated_run_is_shown_beside(compared: Compared, lead: Client) -> None:
    tested = make_tested(
        compared, confirm=lambda n: candidate_says(n) is not (n == 7), noise=lambda n: JUDGE["polite"](n)
    )
    page = lead.get(tested.chat_url(7))
    assert [judge.answer.unstable for judge in page.context["judges"]] == [False, True]
    assert "Repeated run: True unstable full evaluation" in words(lead, tested.chat_url(7))
    for judge in page.context["judges"]:
        assert lead.get(judge.repeated_url).status_code == 200


def test_where_calls_failed_there_is_no_rationale_and_nothing_is_compared(
    tested: DecidedTest, lead: Client
) -> None:
    page = words(lead, tested.chat_url(3))
    assert "Candidate Failed Run" not in page
    assert "Candidate Failed full evaluation" in page
    assert "No text" in page


def test_a_chat_without_a_human_answer_is_in_no_cell(tested: DecidedTest, lead: Client) -> None:
    other = tested.compared.chat(7)
    Label.objects.filter(chat=other).delete()
    Consensus.objects.filter(chat=other).delete()
    page = lead.get(tested.chat_url(7))
    assert page.context["own"]["name"] == ""
    assert (page.context["prev_url"], page.context["next_url"]) == ("", "")
    assert "No labels on this criterion" in text_of(page)


def test_a_decision_is_shown_with_its_reason(tested: DecidedTest, lead: Client) -> None:
    Adjudication.objects.create(
        chat=tested.compared.chat(7),
        criterion=polite(),
        value=True,
        reason="Turn 2 is kind.",
        by_name="Ines",
        created_at=timezone.now(),
    )
    assert "Adjudicated by Ines: True Turn 2 is kind." in words(lead, tested.chat_url(7))


# ---------- walking ----------


def test_previous_and_next_stay_within_the_cell(tested: DecidedTest, lead: Client) -> None:
    fixed = tested.of("fixed")
    for before, here, after in zip(fixed, fixed[1:], fixed[2:], strict=False):
        context = lead.get(tested.chat_url(here, "?cell=fixed")).context
        assert context["prev_url"] == tested.chat_url(before, "?cell=fixed")
        assert context["next_url"] == tested.chat_url(after, "?cell=fixed")
    assert lead.get(tested.chat_url(fixed[0])).context["prev_url"] == ""
    assert lead.get(tested.chat_url(fixed[-1])).context["next_url"] == ""


def test_and_within_what_the_list_was_narrowed_to(tested: DecidedTest, lead: Client) -> None:
    topic = Topic.objects.create(key="refund", name="Refund")
    Chat.objects.filter(external_id__in=["chat-5", "chat-30"]).update(topic=topic)
    context = lead.get(tested.chat_url(5, "?cell=fixed&topic=refund")).context
    assert context["next_url"] == tested.chat_url(30, "?cell=fixed&topic=refund")
    assert context["cell"]["url"] == tested.cell_url("fixed", "?topic=refund")
    assert (context["position"], context["listed"]) == (1, 2)


def test_an_author_walks_past_the_chats_that_are_held_out(tested: DecidedTest, author: Client) -> None:
    assert tested.of("fixed", held=True) == [20, 40]
    context = author.get(tested.chat_url(15, "?cell=fixed")).context
    assert context["next_url"] == tested.chat_url(25, "?cell=fixed")
    assert (context["position"], context["listed"]) == (3, 5)


# ---------- who ----------


def test_a_lead_goes_on_to_adjudicate_a_wrong_label_and_an_author_cannot(
    tested: DecidedTest, lead: Client, author: Client
) -> None:
    item = reverse("labeling:adjudicate", args=[tested.compared.chat(7).pk, "polite"])
    assert f'href="{item}"' in text_of(lead.get(tested.chat_url(7)))
    assert lead.get(item).status_code == 200
    assert item not in text_of(author.get(tested.chat_url(7)))


def test_a_held_out_chat_does_not_exist_for_authors_nor_any_for_raters(
    tested: DecidedTest, lead: Client, author: Client
) -> None:
    assert [one.get(tested.chat_url(20)).status_code for one in (lead, author)] == [200, 404]
    rater = Client()
    rater.force_login(make_user("rita", Role.RATER))
    assert rater.get(tested.chat_url(7)).status_code == 404


def test_what_the_test_does_not_cover_is_not_found(compared: Compared, lead: Client) -> None:
    tested = make_tested(compared, split="dev")
    assert lead.get(tested.chat_url(7)).status_code == 404  # train
    assert lead.get(tested.chat_url(10, "?cell=odd")).status_code == 404
    assert lead.get(tested.chat_url(10, key="welcome")).status_code == 404


@pytest.mark.heavy
def test_the_queries_grow_with_neither_chats_nor_labels(compared: Compared, lead: Client) -> None:
    counts = []
    for to in (40, 90):
        add_chats(compared, to=to)
        tested = make_tested(compared, confirm=candidate_says, noise=candidate_says)
        with CaptureQueriesContext(connection) as queries:
            lead.get(tested.chat_url(7))
        counts.append(len(queries))
    assert counts[0] == counts[1]
