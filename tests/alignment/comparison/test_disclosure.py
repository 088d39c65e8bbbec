"""Figures over too few holdout chats are hidden on test pages and in the API."""

from typing import Any

import pytest
from django.db.models import F, QuerySet
from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.disclosure import SMALL_COUNTS_HIDDEN, hide_small_counts
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.prompts.queries.version_metrics import version_metrics
from alignment.regression.core import GatePolicy, junit_xml, markdown_summary
from alignment.regression.queries.page import regression_tests
from alignment.regression.queries.plan import labelled_chats
from alignment.regression.queries.tests import regression_answer, regression_title
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import SPLITS, Compared, text_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.regression_tests import DecidedTest, decided, make_tested
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    return make_tested(compared, split="holdout")


def shown_to(tested: DecidedTest, user: User) -> Any:
    row = regression_tests().get(pk=tested.test.pk)
    hide_small_counts([row], user=user)
    return row


def hold_out(tested: DecidedTest, *, chats: int) -> None:
    """So many chats are holdout, of all sets; the test covers what it covered."""
    kept = ChatSetMember.objects.filter(split="holdout").values_list("pk", flat=True)[:chats]
    ChatSetMember.objects.filter(split="holdout").exclude(pk__in=list(kept)).update(split="dev")


def test_ten_holdout_chats_are_shown_in_sum(tested: DecidedTest, author_user: User) -> None:
    row = shown_to(tested, author_user)
    assert (row.body, row.reasons) == (tested.test.body, tested.test.reasons)


def test_with_nine_an_author_sees_the_gates_answer_alone(
    tested: DecidedTest, author_user: User, lead_user: User
) -> None:
    hold_out(tested, chats=9)
    row = shown_to(tested, author_user)
    assert (row.result, row.reasons, row.body["criteria"]) == ("inconclusive", [SMALL_COUNTS_HIDDEN], [])
    assert [row.body[key] for key in ("pooled", "more_labels", "bound")] == [None] * 3
    assert (row.body["cautions"], row.body["advice"]) == ([], "")
    assert shown_to(tested, lead_user).body == tested.test.body


def test_nine_labelled_ones_of_more_are_hidden_too(tested: DecidedTest, author_user: User) -> None:
    Consensus.objects.filter(chat=tested.compared.chat(4), criterion=polite()).delete()
    decided(tested.test)
    assert shown_to(tested, author_user).body["criteria"] == []


def test_one_labelled_holdout_chat_among_many_others_is_hidden(
    compared: Compared, author: Client, author_user: User
) -> None:
    tested = make_tested(compared)
    held = ChatSetMember.objects.filter(split="holdout").exclude(chat=compared.chat(4)).values("chat")
    Consensus.objects.filter(chat__in=held, criterion=polite()).delete()
    decided(tested.test)
    assert shown_to(tested, author_user).body["criteria"] == []
    assert "only leads see the counts" in text_of(author.get(tested.cell_url("fixed")))


def test_without_a_holdout_few_chats_are_shown(compared: Compared, author_user: User) -> None:
    tested = make_tested(compared, split="train")
    ChatSetMember.objects.filter(split="holdout").delete()
    assert shown_to(tested, author_user).body == tested.test.body


def test_what_is_stored_stays(tested: DecidedTest, author_user: User) -> None:
    hold_out(tested, chats=3)
    shown_to(tested, author_user)
    assert regression_tests().get(pk=tested.test.pk).body == tested.test.body


def test_list_and_page_of_tests_follow(tested: DecidedTest, author: Client, lead: Client) -> None:
    hold_out(tested, chats=9)
    for url in (
        reverse("alignment:regression_list"),
        reverse("alignment:regression_detail", args=[tested.test.pk]),
    ):
        assert "10 labelled chats; 100 are needed" in text_of(lead.get(url))
        assert "10 labelled chats; 100 are needed" not in text_of(author.get(url))
        assert SMALL_COUNTS_HIDDEN in text_of(author.get(url))


def test_the_page_of_the_version_tested_follows(tested: DecidedTest, author: Client, lead: Client) -> None:
    hold_out(tested, chats=9)
    assert tested.test.candidate is not None
    url = reverse("alignment:prompt_version", args=["polite", tested.test.candidate.number])
    reason = tested.test.reasons[0][1:]  # it begins with a capital there
    assert reason in text_of(lead.get(url))
    shown = text_of(author.get(url))
    assert reason not in shown
    assert SMALL_COUNTS_HIDDEN[1:] in shown


def measured_on(compared: Compared, split: str, user: User) -> list[int]:
    """Number of compared chats that a run of a version shows."""
    (found,) = version_metrics([polite()], user=user).values()
    return [one.table.n for one in found.rows if one.split == split]


def test_a_version_is_not_measured_on_nine_held_out_chats_for_authors(
    compared: Compared, author: Client, lead: Client, author_user: User, lead_user: User
) -> None:
    promote(version := a_version(polite()))
    run_of(version, compared.chat_set, wrong=2)
    assert measured_on(compared, "holdout", author_user) == [10]
    Consensus.objects.filter(chat=compared.chat(4), criterion=polite()).delete()
    forget_documents()
    assert measured_on(compared, "holdout", author_user) == []
    assert measured_on(compared, "holdout", lead_user) == [9]
    assert measured_on(compared, "dev", author_user) == [20]
    number = version.number
    urls = [
        "/criteria/",
        "/criteria/polite/",
        f"/criteria/polite/versions/{number}/",
        "/api/criteria/polite/",
    ]
    urls += ["/api/criteria/polite/prompts/", f"/api/criteria/polite/prompts/{number}/"]
    for url in urls:
        assert "calibration, holdout" not in text_of(author.get(url)), url
        assert '"split":"holdout"' not in text_of(author.get(url)), url
    assert '"split":"holdout"' in text_of(lead.get("/api/criteria/polite/"))


def test_withheld_figures_are_named_in_their_place(compared: Compared, author: Client, lead: Client) -> None:
    promote(version := a_version(polite()))
    run = run_of(version, compared.chat_set)
    Consensus.objects.exclude(chat__in=held_chats()[:9]).delete()
    assert run.run_chats.filter(split="holdout").count() == 10
    for url in ("/criteria/", "/criteria/polite/", f"/criteria/polite/versions/{version.number}/"):
        shown = text_of(author.get(url))
        assert SMALL_COUNTS_HIDDEN[1:] in shown, url
        assert SMALL_COUNTS_HIDDEN[1:] not in text_of(lead.get(url))
        for words in ("Not measured yet", "covers labelled chats.", "split yet"):
            assert words not in shown


def held_chats() -> Any:
    return ChatSetMember.objects.filter(split="holdout").order_by("pk").values_list("chat", flat=True)


def test_a_dev_chat_that_another_set_holds_out_is_left_out_of_what_dev_measures(
    compared: Compared, author: Client, author_user: User, lead_user: User
) -> None:
    promote(version := a_version(polite()))
    run_of(version, compared.chat_set, wrong=30)
    other = ChatSet.objects.create(name="later", rubric=compared.rubric)
    ChatSetMember.objects.create(chat_set=other, chat=compared.chat(1), split="holdout", position=1)
    assert measured_on(compared, "dev", author_user) == [19]
    assert measured_on(compared, "dev", lead_user) == [20]
    assert "you cannot see" not in text_of(author.get("/criteria/polite/"))


def take_back(answers: QuerySet[Any]) -> None:
    """As services do: what was computed from the criterion's answers is out of date then."""
    answers.delete()
    Criterion.objects.filter(key="polite").update(labels_seq=F("labels_seq") + 1)


def covered(compared: Compared, user: User, **query: str) -> int:
    """On how many chats a report or a cell tells this user figures."""
    scope = requested_scope(compared.chat_set, compared.run, query, user)
    assert scope is not None
    return scope.members.count()


def test_a_report_leaves_out_holdout_of_which_one_criterion_has_nine(
    compared: Compared, author_user: User, lead_user: User
) -> None:
    assert covered(compared, author_user) == 40
    take_back(Consensus.objects.filter(chat=compared.chat(4), criterion=polite()))
    assert covered(compared, author_user) == 30
    assert covered(compared, author_user, split="holdout") == 0
    assert covered(compared, lead_user) == 40


@pytest.mark.parametrize("against", ["rater:anna", "each-rater"])
def test_and_holdout_of_which_the_rater_labelled_nine(
    compared: Compared, author_user: User, against: str
) -> None:
    assert covered(compared, author_user, split="holdout", against=against) == 10
    take_back(Label.objects.filter(chat=compared.chat(4), criterion=polite(), rater__name="anna"))
    assert covered(compared, author_user, split="holdout", against=against) == 0
    assert covered(compared, author_user, split="holdout") == 10


def test_one_dev_chat_held_out_elsewhere_is_not_found_by_taking_splits_from_the_whole(
    compared: Compared, author_user: User
) -> None:
    other = ChatSet.objects.create(name="later", rubric=compared.rubric)
    ChatSetMember.objects.create(chat_set=other, chat=compared.chat(1), split="holdout", position=1)
    splits = [covered(compared, author_user, split=split) for split in ("dev", "train", "holdout")]
    assert splits == [19, 10, 10]
    assert covered(compared, author_user) == sum(splits)
    ask: Any = {"chat_set": compared.chat_set, "split": "", "keys": ["polite"], "policy": GatePolicy()}
    (before,) = labelled_chats(**ask, user=author_user)
    assert before.n == 39


def test_before_a_test_nothing_is_shown_of_nine_either(
    compared: Compared, author_user: User, lead_user: User
) -> None:
    Consensus.objects.filter(chat=compared.chat(4), criterion=polite()).delete()
    ask: Any = {"chat_set": compared.chat_set, "split": "holdout", "policy": GatePolicy()}
    ask["keys"] = ["polite", "welcome"]
    assert [row.n for row in labelled_chats(**ask, user=lead_user)] == [9, 10]
    assert [row.n for row in labelled_chats(**ask, user=author_user)] == [0, 0]


def test_answers_for_programs_name_no_chat(tested: DecidedTest) -> None:
    title, answer = regression_title(tested.test), regression_answer(tested.test)
    outputs = [str(answer), markdown_summary(answer, title=title), junit_xml(answer, title=title)]
    for n in tested.places:
        assert SPLITS[n % 4] == "holdout"
        for output in outputs:
            assert f"chat-{n}" not in output
            assert f"order {n}" not in output
