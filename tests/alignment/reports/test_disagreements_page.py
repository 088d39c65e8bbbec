"""The disagreements of a run: all of them in the set's order, for users who can see the chats."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from evaluation.models.runs import Run
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import (
    HUMAN,
    JUDGE,
    SPLITS,
    Compared,
    add_chats,
    cell_url,
    chat_url,
    says,
    text_of,
    urls,
)
from tests.factories.page_text import words_of
from tests.factories.rows import make_criterion, make_rubric, make_set
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db


def differing(*, to: int = 40, splits: tuple[str, ...] = SPLITS) -> list[tuple[str, str]]:
    """Chat and criterion of each disagreement with the consensus, counted here."""
    return [
        (f"chat-{n}", key)
        for n in range(1, to + 1)
        for key in ("wrong_fact", "polite", "welcome")  # the rubric's order: by dimension
        if HUMAN[key](n) != JUDGE[key](n) and SPLITS[n % 4] in splits
    ]


def listed(page) -> list[tuple[str, str]]:
    keys = {"Wrong fact": "wrong_fact", "Polite": "polite", "Welcome": "welcome"}
    return [(item.chat_id, keys.get(item.criterion, item.criterion)) for item in page.context["items"]]


def test_the_report_leads_to_as_many_disagreements_as_it_names(compared: Compared, lead: Client) -> None:
    for query in ("", "?split=dev", "?split=dev&against=rater%3Acleo", "?against=each-rater"):
        report = lead.get(urls(compared)["report"] + query)
        url = reverse("alignment:disagreements", args=[compared.run.pk]) + query
        assert f'href="{escape(url)}"' in text_of(report)
        page = lead.get(url)
        total = report.context["report"]["disagreements_total"]
        assert page.context["page_obj"].paginator.count == total > 0
        assert page.context["report_url"].endswith(query)


def test_every_pair_is_in_the_sets_order_with_both_answers(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["disagreements"])
    found = listed(page)
    assert sorted(found) == sorted(differing())
    assert [chat for chat, _ in found] == [chat for chat, _ in differing()]
    for item, (chat, key) in zip(page.context["items"], found, strict=True):
        n = int(chat.removeprefix("chat-"))
        assert (item.human, item.judge) == (HUMAN[key](n), JUDGE[key](n))
        assert item.url.endswith(f"?criterion={key}")
        assert item.criterion in text_of(page)
    opened = lead.get(page.context["items"][0].url)
    assert opened.context["focus"]["criterion"]["key"] == found[0][1]


def test_against_one_rater_the_disagreements_are_that_raters(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["disagreements"] + "?split=train&against=rater%3Acleo")
    wanted = {
        (f"chat-{n}", key) for n in range(3, 41, 4) for key in HUMAN if says("cleo", key, n) != JUDGE[key](n)
    }
    assert set(listed(page)) == wanted
    assert "cleo and the judge disagree on these chats" in text_of(page)
    assert all(item.url.endswith("&split=train&against=rater%3Acleo") for item in page.context["items"])


def test_an_author_sees_the_number_of_those_on_holdout_chats_only(compared: Compared, author: Client) -> None:
    make_set(compared.rubric, compared.chat(5), name="gold", split="holdout")  # dev here, holdout there
    page = author.get(urls(compared)["disagreements"])
    wanted = [pair for pair in differing(splits=("dev", "train")) if pair[0] != "chat-5"]
    assert sorted(listed(page)) == sorted(wanted)
    # The single chat of dev that is held out elsewhere is not even counted: the figure would tell of it.
    assert page.context["hidden"] == len(differing(splits=("holdout",))) > 0
    assert f"{page.context['hidden']} more on holdout chats" in text_of(page)
    alone = author.get(urls(compared)["disagreements"] + "?split=holdout")
    assert (listed(alone), alone.context["hidden"]) == ([], len(differing(splits=("holdout",))))
    assert "They are on holdout chats" in text_of(alone)


def test_what_one_reader_had_looked_up_shows_another_no_more_and_no_less(
    compared: Compared, lead: Client, author: Client
) -> None:
    pages = [
        urls(compared)["disagreements"],
        cell_url(compared, "polite", "fp"),
        cell_url(compared, "polite", "tn"),
    ]
    alone = [listed(author.get(page)) for page in pages]
    forget_documents()
    whole = [listed(lead.get(page)) for page in pages]
    assert [listed(author.get(page)) for page in pages] == alone
    assert [listed(lead.get(page)) for page in pages] == whole
    for mine, every in zip(alone, whole, strict=True):
        assert mine == [pair for pair in every if int(pair[0].removeprefix("chat-")) % 4] != every


def test_previous_and_next_leave_out_chats_that_the_reader_may_not_read(
    compared: Compared, lead: Client, author: Client
) -> None:
    def around(client: Client, n: int) -> list[str]:
        page = client.get(chat_url(compared, n))
        return [page.context[name].split("?")[0] for name in ("prev_url", "next_url")]

    def chats(*places: int) -> list[str]:
        return [chat_url(compared, n, query="") for n in places]

    # On `polite` people and judge differ on every fifth chat; every fourth is holdout.
    for _ in range(2):
        assert around(lead, 15) == chats(10, 20)
        assert around(lead, 25) == chats(20, 30)
        assert around(author, 15) == chats(10, 25)
        assert around(author, 25) == chats(15, 30)
        assert around(author, 17) == chats(15, 25)


def test_a_label_a_text_or_a_run_that_goes_on_is_followed(compared: Compared, lead: Client) -> None:
    page = urls(compared)["disagreements"]
    before = listed(lead.get(page))
    Consensus.objects.filter(chat=compared.chat(5), criterion__key="polite").update(state="false")
    Criterion.objects.filter(key="polite").update(labels_seq=99)
    after = listed(lead.get(page))
    assert [pair for pair in before if pair not in after] == [("chat-5", "polite")]
    Run.objects.update(finished_at=None, state="running")
    compared.run.verdicts.filter(chat=compared.chat(10)).delete()
    assert [pair for pair in listed(lead.get(page)) if pair[0] == "chat-10"] == []


def test_a_criterion_that_the_run_knows_nothing_of_has_no_chats(compared: Compared, lead: Client) -> None:
    make_criterion("other", rubric=make_rubric(name="elsewhere"))
    page = lead.get(cell_url(compared, "other", "fn"))
    assert (page.status_code, listed(page)) == (200, [])


def test_they_are_listed_in_pages_that_keep_their_query(compared: Compared, lead: Client) -> None:
    add_chats(compared, to=200)
    total = len(differing(to=200))
    first = lead.get(urls(compared)["disagreements"] + "?against=consensus")
    assert len(first.context["items"]) == 50
    assert first.context["page_obj"].paginator.count == total
    assert "?against=consensus&amp;page=2" in text_of(first)
    last = lead.get(urls(compared)["disagreements"] + "?page=99")
    assert len(last.context["items"]) == total % 50


def test_without_a_disagreement_the_page_says_so(compared: Compared, lead: Client) -> None:
    compared.run.verdicts.all().delete()
    page = lead.get(urls(compared)["disagreements"])
    assert "No disagreements" in text_of(page)
    report = text_of(lead.get(urls(compared)["report"]))
    assert reverse("alignment:disagreements", args=[compared.run.pk]) not in report


def test_nonsense_in_the_address_is_not_found(compared: Compared, lead: Client) -> None:
    for query in ("?against=rater%3Anobody", "?split=test"):
        assert lead.get(urls(compared)["disagreements"] + query).status_code == 404
    assert lead.get(reverse("alignment:disagreements", args=[999999])).status_code == 404


def test_chats_without_a_title_are_distinguished_by_their_names(compared: Compared, lead: Client) -> None:
    titled = compared.chat(5)
    titled.metadata = {"title": "A lost parcel"}
    titled.save()
    shown = words_of(lead.get(urls(compared)["disagreements"]))
    assert "A lost parcel , Polite chat-5, Delivery, dev" in shown
    assert "Delivery , Wrong fact chat-7, train" in shown
