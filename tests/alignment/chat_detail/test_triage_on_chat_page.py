"""Triage on the page of a chat: the form, its counts, the neighbours, and what the criterion reads."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment
from evaluation.models.prompts import ArticleVersion, KnowledgeArticle
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, add_chats, chat_url, text_of
from tests.factories.prompt_versions import a_version, run_of
from tests.factories.rater_quality import polite
from tests.factories.triage import item_on, triage

pytestmark = pytest.mark.django_db

# The judge differs from the consensus on every fifth chat.
DIFFERING = (5, 10, 15, 20, 25, 30, 35, 40)


def counts_of(client: Client, compared: Compared) -> str:
    address = reverse("alignment:chat_triaged", args=[compared.run.pk, compared.chat(5).pk])
    return " ".join(text_of(client.get(f"{address}?criterion=polite")).split())


@pytest.fixture(autouse=True)
def scanned(compared: Compared) -> None:
    misalignments_refresh(compared.run)


def test_a_disagreement_is_triaged_beside_its_chat(compared: Compared, lead: Client, author: Client) -> None:
    item = item_on(5)
    for client in (lead, author):
        page = text_of(client.get(chat_url(compared, 5)))
        assert f'data-item="{item.pk}"' in page and f'data-revision="{item.revision}"' in page
        assert page.count("<kbd>6</kbd>") == 2  # the button, and the list of keys
        assert "anna on polite" in page and "The judge on polite of chat 5" in page


def test_a_chat_without_a_disagreement_has_no_form(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(chat_url(compared, 6)))
    assert "triage-form" not in page and "triage-counts" not in page


def test_against_one_rater_there_is_no_triage(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(chat_url(compared, 5, "?criterion=polite&against=rater%3Acleo")))
    assert "triage-form" not in page


def test_the_page_offers_to_scan_a_run_that_waits(compared: Compared, lead: Client) -> None:
    later = run_of(a_version(polite()), compared.chat_set, wrong=7)
    address = reverse("alignment:chat", args=[later.pk, compared.chat(7).pk]) + "?criterion=polite"
    page = text_of(lead.get(address))
    assert f'hx-post="/misalignments/?run={later.pk}"' in page and "triage-form" not in page


def test_place_and_neighbours_are_those_of_the_run(compared: Compared, lead: Client) -> None:
    page = lead.get(chat_url(compared, 10))
    assert "Disagreement 2 of 8 on polite" in text_of(page)
    assert page.context["prev_url"].startswith(chat_url(compared, 5))
    assert page.context["next_url"].startswith(chat_url(compared, 15))
    assert f"/misalignments/?criterion=polite&amp;run={compared.run.pk}" in text_of(page)


def test_breadcrumbs_name_the_run(compared: Compared, lead: Client) -> None:
    page, run = text_of(lead.get(chat_url(compared, 5))), compared.run.pk
    assert f'<a href="/reports/runs/{run}/">Run {run}</a> /' in page
    assert f'<a href="/reports/runs/{run}/criteria/polite/">Polite</a> /' in page


def test_back_leads_where_the_reader_came_from_and_stays_on_the_way(compared: Compared, lead: Client) -> None:
    came_from = f"/reports/runs/{compared.run.pk}/polite/fn/"
    page = lead.get(chat_url(compared, 10), headers={"referer": f"http://testserver{came_from}"})
    assert f'<a href="{came_from}" data-origin>← Back to the list of chats</a>' in text_of(page)
    assert page.context["next_url"].endswith(f"&back={came_from.replace('/', '%2F')}")
    after = lead.get(
        page.context["next_url"], headers={"referer": f"http://testserver{chat_url(compared, 10)}"}
    )
    assert f'<a href="{came_from}" data-origin>' in text_of(after)


def test_the_counts_follow_each_change(compared: Compared, lead: Client) -> None:
    assert "0 of 8 triaged" in counts_of(lead, compared)
    triage(lead, item_on(5), cause="judge")
    triage(lead, item_on(10), cause="judge")
    triage(lead, item_on(15), cause="label")
    assert "3 of 8 triaged: judge wrong 2, label wrong 1" in counts_of(lead, compared)
    assert "3 of 8 triaged: judge wrong 2, label wrong 1" in text_of(lead.get(chat_url(compared, 5)))


def test_authors_count_no_holdout_chat(compared: Compared, author: Client) -> None:
    assert "0 of 6 triaged" in counts_of(author, compared)
    held = reverse("alignment:chat_triaged", args=[compared.run.pk, compared.chat(20).pk])
    assert author.get(f"{held}?criterion=polite").status_code == 404


def test_the_editor_opens_with_the_chats_of_this_cause_pinned_from_the_version_that_judged_them(
    compared: Compared, lead: Client
) -> None:
    later = run_of(a_version(polite()), compared.chat_set)
    misalignments_refresh(later)
    for n in (10, 15):
        Misalignment.objects.filter(pk=item_on(n).pk).update(cause="judge", state="triaged")
    page = lead.get(reverse("alignment:chat", args=[later.pk, compared.chat(5).pk]) + "?criterion=polite")
    pins = ",".join(str(compared.chat(n).pk) for n in (5, 10, 15))
    assert page.context["triage"].refine_url == f"/criteria/polite/prompt/?pin={pins}&base=1"


def test_the_articles_that_match_the_chat_come_first(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="polite").update(articles=Criterion.Articles.ALL)
    for key, text in (
        ("fees", "Fees are charged monthly."),
        ("parcels", "An order on its way can be tracked."),
    ):
        article = KnowledgeArticle.objects.create(key=key)
        ArticleVersion.objects.create(
            article=article, number=1, title=key.capitalize(), text=text, content_hash=key
        )
    page = lead.get(chat_url(compared, 5))
    focus = page.context["focus"]
    assert [row.article.key for row in focus["articles"]] == ["parcels"]
    assert [row.article.key for row in focus["more_articles"]] == ["fees"]
    assert "An order on its way can be tracked." in text_of(page)


def test_the_queries_do_not_grow_with_the_disagreements(compared: Compared, lead: Client) -> None:
    address = chat_url(compared, 5)
    lead.get(address)
    with CaptureQueriesContext(connection) as few:
        lead.get(address)
    add_chats(compared, to=120)
    type(compared.run).objects.update(finished_at=timezone.now())
    misalignments_refresh(compared.run)
    lead.get(address)
    with CaptureQueriesContext(connection) as many:
        lead.get(address)
    assert len(many) == len(few) <= 44
