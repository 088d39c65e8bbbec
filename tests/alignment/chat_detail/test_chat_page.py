"""One chat of a run: labels and verdicts side by side, and how the judge decided."""

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from evaluation.models.prompts import FewShotExample
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import ChatSetMember
from labeling.models.labels import Adjudication, Consensus, Label
from tests.factories.compared_runs import Compared, chat_url, text_of
from tests.factories.rows import make_chat
from tests.factories.runs import always, answering, evaluate, the_run, workspace
from tests.stub_endpoint import Answer, Body, StubReply, asked_text

TOO_LONG = json.dumps({"error": {"code": "context_length_exceeded", "message": "too many tokens"}})
CUSTOMER, ADVOCATE = "Speak for the customer", "Answers to argue for"


def line_of(page, key: str = "polite"):
    """The row of a criterion in "Labels and verdicts"."""
    rows = [row for group in page.context["rows"] for row in group["rows"]]
    return next(row for row in rows if row["criterion"]["key"] == key)


def shown_line(page, key: str = "polite") -> str:
    """The same row as HTML."""
    rows: list[str] = re.findall(r"<tr class=.*?</tr>", text_of(page), re.DOTALL)
    return next(row for row in rows if f"criterion={key}" in row)


# ---------- how the judge decided ----------


def too_long_for(*marks: str) -> Answer:
    """Whatever holds one of these marks does not fit the model; everything else is answered True."""

    def answer(body: Body) -> StubReply:
        if any(mark in asked_text(body) for mark in marks):
            return StubReply(status=400, raw=TOO_LONG.encode())
        return always(True)(body)

    return answer


def judged_chat(lead: Client, settings: Settings, engine: str, answer: Answer):
    """The page of the one chat that an engine has judged."""
    chat = workspace("polite", chats=1).members.get().chat
    with answering(settings, answer):
        assert evaluate("--set", "calibration", "--engine", engine).answer["state"] == "done"
    return lead.get(reverse("alignment:chat", args=[the_run().pk, chat.pk]))


@pytest.mark.django_db(transaction=True)
def test_prompts_with_an_example_from_a_chat_that_the_user_cannot_see_are_hidden(
    lead: Client, author: Client, settings: Settings
) -> None:
    page = judged_chat(lead, settings, "direct", always(True))
    row, run = page.context["run"].chat_set, page.context["run"]
    secret = make_chat(external_id="secret")
    FewShotExample.objects.create(
        prompt_version=run.judge.prompts.get().prompt_version,
        position=1,
        chat=secret,
        first_turn=1,
        last_turn=1,
        rationale="So.",
    )
    address = page.request["PATH_INFO"]
    sent = "<h3>System</h3>"
    assert sent in text_of(author.get(address))
    ChatSetMember.objects.create(chat_set=row, chat=secret, split="holdout", position=9)
    shown = text_of(author.get(address))
    assert sent not in shown
    assert "Prompts are hidden: one contains an example from a chat that you cannot see" in shown
    assert sent in text_of(lead.get(address))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("engine", "sentence", "deciding", "steps"),
    [
        ("direct", "One pass over the chat.", "First pass", 1),
        ("reflection", "Two passes of the same model", "Reflection", 2),
        ("debate", "Critic and defender argue independently", "Judge", 3),
    ],
)
def test_the_engine_says_how_the_judge_decided(
    lead: Client, settings: Settings, engine: str, sentence: str, deciding: str, steps: int
) -> None:
    page = judged_chat(lead, settings, engine, always(True))
    focus = page.context["focus"]
    assert (focus["engine"], len(focus["steps"])) == (engine, steps)
    assert [step.title for step in focus["deciding"]] == [deciding]
    assert sentence in text_of(page)
    articles = re.findall(r'<article class="arg( judge)?">', text_of(page))
    assert articles.count(" judge") == (steps > 1)  # a single step is told beside the chat
    assert "stopped before" not in text_of(page)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("marks", [(CUSTOMER,), (ADVOCATE,)])
def test_a_debate_that_stopped_before_the_judge_has_no_deciding_step(
    lead: Client, settings: Settings, marks: tuple[str, ...]
) -> None:
    page = judged_chat(lead, settings, "debate", too_long_for(*marks))
    shown, focus = text_of(page), page.context["focus"]
    assert (focus["verdict"].state, focus["deciding"]) == ("too_long", [])
    assert "Critic and defender argue independently" in shown
    assert "The judge stopped before its deciding step." in shown
    assert "Two passes" not in shown
    assert "No verdict: too long" in shown
    decided = shown[shown.index('id="verdict"') : shown.index('id="calls"')]
    assert '<article class="arg judge">' not in decided
    assert '<span class="tag">Too long</span>' not in decided
    assert 'class="t cited' not in shown


@pytest.mark.django_db(transaction=True)
def test_a_reflection_whose_draft_did_not_fit_shows_no_first_pass_as_deciding(
    lead: Client, settings: Settings
) -> None:
    page = judged_chat(lead, settings, "reflection", too_long_for("polite"))
    assert page.context["focus"]["deciding"] == []
    assert "Two passes of the same model" in text_of(page)
    assert "No text: too long." in text_of(page)


def test_an_imported_verdict_is_one_step_that_decides(compared: Compared, lead: Client) -> None:
    page = lead.get(chat_url(compared, 5))
    assert page.context["focus"]["engine"] == ""
    assert [step.title for step in page.context["focus"]["deciding"]] == ["outside judge"]
    assert "Imported verdict" in text_of(page)


@pytest.mark.django_db(transaction=True)
def test_the_calls_behind_a_verdict_are_read_once(lead: Client, settings: Settings) -> None:
    page = judged_chat(lead, settings, "debate", always(True))
    with CaptureQueriesContext(connection) as queries:
        assert lead.get(page.request["PATH_INFO"]).status_code == 200
    read = [query for query in queries.captured_queries if 'FROM "evaluation_unitcall"' in query["sql"]]
    assert len(read) == 1


# ---------- what it means for the bot ----------


@pytest.mark.parametrize(
    ("state", "title"), [("unresolved", "Unresolved"), ("na", "Not applicable"), (None, "Unlabelled")]
)
def test_without_a_human_answer_there_is_no_outcome(
    compared: Compared, lead: Client, state: str | None, title: str
) -> None:
    rows = Consensus.objects.filter(chat=compared.chat(5), criterion__key="polite")
    if state is None:
        rows.delete()
    else:
        rows.update(state=state)
    shown = shown_line(lead.get(chat_url(compared, 5)))
    assert f'<span class="dim" title="{title}">–</span>' in shown
    assert "Pass" not in shown
    assert "Fail" not in shown


def test_the_outcome_is_that_of_the_consensus(compared: Compared, lead: Client) -> None:
    assert "Pass" in shown_line(lead.get(chat_url(compared, 1)))
    assert "Fail" in shown_line(lead.get(chat_url(compared, 2)))
    page = lead.get(chat_url(compared, 4, "?criterion=wrong_fact"))  # True, where False is good
    assert "Fail" in shown_line(page, "wrong_fact")


def test_an_adjudicated_answer_shows_no_majority(compared: Compared, lead: Client) -> None:
    chat, polite = compared.chat(3), compared.rubric.criteria.get(key="polite")
    before = shown_line(lead.get(chat_url(compared, 3)))
    assert "2 of 3" in before
    assert "adjudicated" not in before
    Adjudication.objects.create(
        chat=chat, criterion=polite, value=False, reason="curt", by_name="Ines", created_at=timezone.now()
    )
    consensus_refresh(criterion_ids=[polite.pk], chat_ids=[chat.pk])
    after = shown_line(lead.get(chat_url(compared, 3)))
    assert "adjudicated" in after
    assert "of 3" not in after
    assert '<span class="p">False</span>' in after


# ---------- against one rater ----------

CLEO = "?criterion=polite&against=rater%3Acleo"


def test_against_one_rater_their_label_is_compared_with_the_verdict(compared: Compared, lead: Client) -> None:
    # On chat 3 cleo alone says False and the judge True; the consensus is True.
    page = lead.get(chat_url(compared, 3, CLEO))
    line = line_of(page)
    assert (line["human"].state, line["differ"]) == ("false", True)
    assert not line_of(lead.get(chat_url(compared, 3)))["differ"]
    shown = text_of(page)
    assert '<th scope="col"><span class="p">cleo</span></th>' in shown
    assert "cleo and judge agree on 0 of 3 compared criteria" in shown
    assert "of 3</span>" not in shown_line(page)
    # On chat 15 all but cleo differ from the judge.
    assert not line_of(lead.get(chat_url(compared, 15, CLEO)))["differ"]


def test_against_one_rater_previous_and_next_are_their_disagreements(
    compared: Compared, lead: Client
) -> None:
    page = lead.get(chat_url(compared, 3, CLEO))
    assert page.context["next_url"].startswith(chat_url(compared, 5))  # then 6, 9, 10, 12: not 15
    page = lead.get(chat_url(compared, 12, CLEO))
    assert page.context["prev_url"].startswith(chat_url(compared, 10))
    assert page.context["next_url"].startswith(chat_url(compared, 18))
    assert page.context["next_url"].endswith("against=rater%3Acleo")


def test_a_chat_without_the_raters_label_is_unlabelled(compared: Compared, lead: Client) -> None:
    Label.objects.filter(rater__name="cleo", chat=compared.chat(5), criterion__key="polite").delete()
    line = line_of(lead.get(chat_url(compared, 5, CLEO)))
    assert (line["human"].state, line["compared"], line["differ"]) == ("unlabelled", False, False)


def test_a_label_given_after_the_verdict_was_shown_does_not_count(compared: Compared, lead: Client) -> None:
    Label.objects.filter(rater__name="cleo", chat=compared.chat(5)).update(post_reveal=True)
    assert line_of(lead.get(chat_url(compared, 5, CLEO)))["human"].state == "unlabelled"


def test_against_each_rater_one_disagreement_is_enough(compared: Compared, lead: Client) -> None:
    query = "?criterion=polite&against=each-rater"
    page = lead.get(chat_url(compared, 3, query))
    assert line_of(page)["differ"]
    assert "All raters and judge agree on 0 of 3 compared criteria" in text_of(page)
    assert page.context["next_url"].startswith(chat_url(compared, 5))
    assert not line_of(lead.get(chat_url(compared, 1, query)))["differ"]
