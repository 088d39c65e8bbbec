"""What the knowledge panel of the rating screen gives a rater: the criterion's articles, best ones first."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.chats import Chat
from labeling.models.labels import Assignment
from labeling.models.rubric import Criterion
from labeling.rating.services.leases import assignment_skip
from tests.factories.api_calls import signed_in
from tests.factories.articles import make_article
from tests.factories.labelling_job import Desk, make_desk, user_of

pytestmark = pytest.mark.django_db

LONG = "\n\n".join(f"## Part {n}\n\n{'Nothing of interest is written here. ' * 12}" for n in range(4))


@pytest.fixture
def desk() -> Desk:
    desk = make_desk()
    turns = [{"n": 1, "role": "user", "content": "May I tip my shopper after the delivery?"}]
    Chat.objects.update(messages=turns, message_count=1)
    first = desk.criteria[0]
    make_article("alcohol", "# Alcohol\n\nWine needs an adult at the door.", criterion=first)
    make_article("tips", "# Tips\n\nA tip can be lowered until a day after delivery.", criterion=first)
    return desk


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def panel(rater: Client, assignment: Assignment, key: str = "polite", **query: str) -> Any:
    return rater.get(reverse("alignment:rater_knowledge", args=[assignment.pk, key]), query)


def shown(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def test_the_articles_that_match_the_chat_come_first_with_their_text(desk: Desk, rater: Client) -> None:
    page = shown(panel(rater, desk.taken()))
    first, others = page.split("All other articles")
    assert "For this chat" in first
    assert "A tip can be lowered" in first
    assert "Alcohol" in others
    assert "needs an adult" not in others  # loaded when it is unfolded
    assert page.count("Tips") == 1  # the heading does not repeat the title


def test_of_a_long_article_the_matching_passages_are_shown_and_the_whole_on_request(
    desk: Desk, rater: Client
) -> None:
    assignment = desk.taken()
    make_article("tips", f"# Tips\n\n{LONG}\n\n## Lower a tip\n\nA tip goes to the shopper.")
    page = shown(panel(rater, assignment))
    assert "A tip goes to the shopper" in page
    assert "Nothing of interest" not in page
    assert "Whole article" in page
    assert "Nothing of interest" in shown(panel(rater, assignment, article="tips"))


def test_the_newest_version_is_shown_and_older_ones_on_request(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    make_article("tips", "A tip is final after delivery.")
    page = shown(panel(rater, assignment))
    assert "final after delivery" in page
    assert "can be lowered" not in page
    assert "Version 2," in page
    assert "can be lowered" in shown(panel(rater, assignment, article="tips", version="1"))
    assert panel(rater, assignment, article="tips", version="9" * 30).status_code == 404


def test_each_criterion_has_its_own_articles(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    assert "No article belongs to this criterion" in shown(panel(rater, assignment, "correct"))
    assert panel(rater, assignment, "correct", article="tips").status_code == 404
    Criterion.objects.filter(key="correct").update(articles=Criterion.Articles.ALL)
    assert 'data-total="2"' in shown(panel(rater, assignment, "correct"))


@pytest.mark.parametrize(
    ("words", "found"),
    [("adul", ["alcohol"]), ("lowering", ["tips"]), ("tips", ["tips"]), ("refund", []), ("the", ["alcohol"])],
)
def test_a_search_finds_parts_of_words_and_other_forms_of_them(
    desk: Desk, rater: Client, words: str, found: list[str]
) -> None:
    page = shown(panel(rater, desk.taken(), q=words))
    assert [key for key in ("alcohol", "tips") if f'data-article="{key}"' in page] == found
    assert ("No article has these words" in page) == (not found)


def test_the_panel_belongs_to_the_raters_own_chat_and_its_criteria(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    assert panel(signed_in(user_of(desk.raters[1])), assignment).status_code == 404
    assert panel(rater, assignment, "unknown").status_code == 404
    assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")
    assert panel(rater, assignment).status_code == 404


def test_many_articles_ask_no_more_of_the_database_and_no_verdict_is_read(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    with CaptureQueriesContext(connection) as few:
        panel(rater, assignment)
    for n in range(20):
        make_article(f"more-{n}", f"Article {n} about tips.", criterion=desk.criteria[0])
    with CaptureQueriesContext(connection) as many:
        panel(rater, assignment)
    assert len(many) == len(few)
    assert not [query for query in many if "verdict" in query["sql"] or "labelrevision" in query["sql"]]
