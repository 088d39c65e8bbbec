"""The pages of regression tests: all of them, one of them, and nobody's chats."""

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.core.codes import JudgeCode
from alignment.models.regressions import HoldoutOpening, RegressionTest
from alignment.regression.core import (
    PairedVerdicts,
    markdown_summary,
)
from alignment.regression.queries.page import regression_progress
from alignment.regression.queries.tests import regression_answer
from evaluation.models.runs import Run, Unit
from labeling.models.chats import Chat, ChatSet
from labeling.models.people import Role, User
from tests.factories.compared_runs import Compared
from tests.factories.decided_tests import body_of, make_test
from tests.factories.gate_verdicts import verdicts
from tests.factories.page_text import words_of
from tests.factories.rater_quality import polite
from tests.factories.rows import make_user
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db

LIST = "alignment:regression_list"


def page_of(client: Client, test: RegressionTest) -> str:
    return words_of(client.get(reverse("alignment:regression_detail", args=[test.pk])))


def test_a_decided_test_shows_its_answer_and_the_counts_behind_it(compared: Compared, lead: Client) -> None:
    body = body_of(verdicts(fixed=3, broken=14, right=183, ceiling=0.9))
    shown = page_of(lead, make_test(compared, body=body))
    for words in (
        "Version 2 Fail",
        "Fail. Version 2 is worse than the champion.",
        "polite got worse: 14 broken, 3 fixed of 200 chats (p = 0.004, limit 0.05)",
        "183 still right",
        "14 broken",
        "3 fixed",
        "Human ceiling 0.90",
        "Accuracy 0.98 → 0.93",
        "−5.5 pts −10.1 to −1.7",
        "8% of the verdicts changed",
        "The change is within the noise.",
    ):
        assert words in shown
    assert "Mean accuracy over all" not in shown


def test_chance_corrected_agreement_is_shown_before_and_after_with_intervals(
    compared: Compared, lead: Client
) -> None:
    body = body_of(verdicts(fixed=30, broken=2, right=150, wrong=18))
    found = body["criteria"][0]
    shown = page_of(lead, make_test(compared, body=body))
    assert "AC1 0.52 → 0.80 +28.0 pts" in shown
    assert "Cohen’s kappa 0.52 → 0.80 +28.0 pts" in shown
    for side in ("before", "after"):
        assert found[side]["kappa"]["low"] < found[side]["kappa"]["value"] < found[side]["kappa"]["high"]
    assert body["bootstrap"] == {"seed": 1, "resamples": 2000}


def test_kappa_that_is_not_defined_or_zero_by_construction_says_why(compared: Compared, lead: Client) -> None:
    """Kappa is undefined if raters and champion return only True, and 0 if the candidate returns both."""
    human, old = (np.zeros(40, dtype=np.int8) for _ in range(2))
    new = np.where(np.arange(40) < 4, 1, 0).astype(np.int8)
    body = body_of(PairedVerdicts("polite", "simple", human, old, new))
    shown = page_of(lead, make_test(compared, body=body))
    why = "– raters and judge gave the same single answer", "0.00 raters gave one answer only"
    assert f"Cohen’s kappa {' '.join(why)}" in shown


def test_a_test_decided_before_kappa_was_counted_shows_what_it_stored(
    compared: Compared, lead: Client
) -> None:
    body = body_of(verdicts(right=200))
    for side in ("before", "after"):
        for name in ("kappa", "gwet_ac1", "undefined"):
            del body["criteria"][0][side][name]
    test = make_test(compared, body=body)
    shown = page_of(lead, test)
    assert "Balanced accuracy 1.00 → 1.00" in shown
    assert "κ" not in shown
    assert "| – → – |" in markdown_summary(regression_answer(test), title="polite")


def test_answers_without_a_verdict_are_shown_by_state_and_counted_as_wrong(
    compared: Compared, lead: Client
) -> None:
    human = (np.arange(100) % 2).astype(np.int8)
    new = np.where(np.arange(100) < 12, JudgeCode.CUT_OFF, human).astype(np.int8)
    test = make_test(compared, body=body_of(PairedVerdicts("polite", "simple", human, human, new)))
    shown = page_of(lead, test)
    assert "No verdict on 0 → 12 (12 cut off) of 100 chats. These answers count as wrong" in shown
    assert "No verdict, counted as wrong 0 12 (12 cut off)" in shown
    for side in ("before", "after"):  # as stored before states were counted
        del (test.body or {})["criteria"][0][side]["no_verdict_by"]
    test.save()
    assert "No verdict on 0 → 12 of 100 chats" in page_of(lead, test)


def test_answers_that_nobody_can_read_come_first_and_no_labels_are_advised(
    compared: Compared, lead: Client
) -> None:
    human = (np.arange(10) % 2).astype(np.int8)
    cut_off = np.full(10, JudgeCode.CUT_OFF, dtype=np.int8)
    body = body_of(PairedVerdicts("polite", "simple", human, cut_off, cut_off))
    shown = page_of(lead, make_test(compared, body=body))
    assert (
        "Inconclusive. No usable answer on 10 of 10 chats: cut off. More labels do not help: raise the room"
        " for answers or change the model, then test again."
    ) in shown
    assert "Cut off 10 10 10 Raise the room for answers or change the model" in shown
    assert "are needed" not in shown and "more labelled chats" not in shown


def test_a_pass_with_a_few_unread_answers_is_still_a_pass_first(compared: Compared, lead: Client) -> None:
    human = (np.arange(200) % 2).astype(np.int8)
    champion = human.copy()
    champion[:30] = JudgeCode.UNPARSED
    shown = page_of(
        lead, make_test(compared, body=body_of(PairedVerdicts("polite", "simple", human, champion, human)))
    )
    assert "Pass. Version 2 may replace the champion." in shown
    assert "Unreadable 30 0 200" in shown


def test_several_criteria_show_their_mean(compared: Compared, lead: Client) -> None:
    criteria = verdicts(right=200), verdicts(right=200, key="exact")
    shown = page_of(lead, make_test(compared, body=body_of(*criteria), candidate=None, kind="judge"))
    assert "Mean accuracy over all blocking criteria" in shown


def test_an_open_test_looks_again_by_itself_and_a_decided_one_does_not(
    compared: Compared, lead: Client
) -> None:
    going, done = make_test(compared), make_test(compared, body=body_of(verdicts(right=200)))
    answers = [lead.get(reverse("alignment:regression_detail", args=[test.pk])) for test in (going, done)]
    assert [b"every 2s" in answer.content for answer in answers] == [True, False]
    assert "Champion and candidate are running." in page_of(lead, going)
    again = make_test(compared, state="confirming")
    assert "A second run of the candidate confirms it" in page_of(lead, again)


def test_a_cancelled_test_says_so(compared: Compared, lead: Client) -> None:
    assert "The test ended before a decision" in page_of(lead, make_test(compared, state="cancelled"))


def test_it_says_how_often_the_holdout_was_opened(compared: Compared, lead: Client, lead_user: User) -> None:
    for _ in range(3):
        test = make_test(compared, split="holdout")
        HoldoutOpening.objects.create(
            regression=test, chat_set=test.chat_set, criterion=polite(), by=lead_user
        )
    assert "holdout used 3 times" in page_of(lead, test)
    assert "holdout used" not in page_of(lead, make_test(compared))


def test_labels_sampled_by_verdict_are_named(compared: Compared, lead: Client) -> None:
    test = make_test(compared, split="dev")
    assert "sampled by verdict" not in page_of(lead, test)
    chosen = ChatSet.objects.create(
        name="more",
        rubric=compared.rubric,
        kind=ChatSet.Kind.SAMPLE,
        sampling={"run": compared.run.pk, "oversampled": True, "criteria": ["polite"]},
    )
    for position in (1, 2):  # of splits dev
        chosen.members.create(chat=compared.chat(position), position=position, inclusion_probability=0.5)
    forget_documents()  # what is kept knows nothing of a set made after the labels
    assert "2 labelled chats were sampled by verdict" in page_of(lead, test)


def test_the_list_names_candidate_set_and_answer(compared: Compared, lead: Client) -> None:
    assert "No regression tests yet" in words_of(lead.get(reverse(LIST)))
    make_test(compared, body=body_of(verdicts(right=99)))
    shown = words_of(lead.get(reverse(LIST)))
    assert "Polite version 2" in shown
    assert "Inconclusive polite: 99 labelled chats; 100 are needed to pass alone" in shown


def test_the_list_takes_the_same_number_of_queries_for_one_and_for_forty(
    compared: Compared, lead: Client
) -> None:
    body, counts = body_of(verdicts(right=99)), []
    for more in (1, 39):
        for _ in range(more):
            make_test(compared, body=body)
        with CaptureQueriesContext(connection) as queries:
            lead.get(reverse(LIST))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_raters_find_no_tests(compared: Compared, client: Client) -> None:
    client.force_login(make_user("rita", Role.RATER))
    test = make_test(compared)
    for url in (reverse(LIST), reverse("alignment:regression_detail", args=[test.pk])):
        assert client.get(url).status_code == 404


def test_the_time_left_is_shown_for_the_candidate_too_once_the_champion_is_done(compared: Compared) -> None:
    test = make_test(compared)
    judge, chat_set = compared.run.judge, compared.run.chat_set
    runs = [
        Run.objects.create(judge=judge, chat_set=chat_set, units_total=40, units_done=done, state=state)
        for done, state in ((40, Run.State.DONE), (0, Run.State.RUNNING))
    ]
    ended = timezone.now() - timedelta(seconds=20)
    Unit.objects.bulk_create(
        Unit(run=runs[0], chat=chat, group=0, state="done", finished_at=ended)
        for chat in Chat.objects.all()[:40]
    )
    test.baseline_run, test.candidate_run = runs
    assert regression_progress(test)["seconds_left"] == pytest.approx(20, rel=0.1)
