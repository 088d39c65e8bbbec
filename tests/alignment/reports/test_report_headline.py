"""The sentence above a report: the number of criteria with each status."""

import pytest
from django.test import Client

from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, one_of_each_status, share_report, urls
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db

EACH = "The judge is compared with each rater, so criteria have no status."


@pytest.fixture
def large(compared: Compared) -> Compared:
    """One criterion is aligned, one is not, one has no human False."""
    one_of_each_status(compared)
    return compared


def said(client: Client, compared: Compared, query: str = "") -> tuple[str, str]:
    """On the live page and on the stored one."""
    stored = share_report(client, compared, query)
    page = client.get(urls(compared)["report"] + query)
    return page.context["headline"], stored.context["headline"]


def test_it_counts_the_criteria_of_each_status(large: Compared, lead: Client) -> None:
    now, then = said(lead, large)
    assert now == (
        "The judge is aligned with the raters on 1 of 3 criteria. 1 is not aligned. 1 has too few labels."
    )
    assert then == (
        "The judge was aligned with the raters on 1 of 3 criteria, not aligned on 1; 1 had too few labels."
    )


def test_a_subjective_criterion_is_directional_whatever_its_figures(large: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="wrong_fact").update(tier="subjective")
    now, then = said(lead, large)
    assert now == (
        "The judge is aligned with the raters on 0 of 2 criteria. 1 is not aligned. "
        "1 has too few labels. 1 more is directional only."
    )
    assert then.endswith("1 had too few labels; 1 more was directional only.")
    Criterion.objects.update(tier="subjective")
    assert said(lead, large) == ("All 3 criteria are directional only.",) * 2


def test_against_each_rater_there_is_no_status_to_count(large: Compared, lead: Client) -> None:
    assert said(lead, large, "?against=each-rater") == (EACH, EACH)


def test_a_small_set_says_how_many_labels_a_status_needs(compared: Compared, lead: Client) -> None:
    shown = words_of(lead.get(urls(compared)["report"]))
    assert "needs 30 human True and 30 human False labels, and there are 40 chats" in shown
