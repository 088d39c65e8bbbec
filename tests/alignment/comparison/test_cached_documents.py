"""Cached documents: one per subject; reports are kept for good."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from time import sleep
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.cached_documents import cached_document, documents_stored, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.labels import Label
from tests.factories.compared_runs import Compared, urls
from tests.factories.judge_comparison import judged, perfect
from tests.factories.stored_reports import stored

pytestmark = pytest.mark.django_db

Kind = Report.Kind


def a_label_changes(compared: Compared, n: int) -> None:
    """On every criterion, as an import does it."""
    labels = Label.objects.filter(chat=compared.chat(n))
    labels.filter(rater__name="cleo").update(value=n % 2 == 0)
    ids = [row.pk for row in compared.criteria]
    consensus_refresh(criterion_ids=ids, chat_ids=[compared.chat(n).pk])


def opened(compared: Compared, *clients: Client) -> Counter[str]:
    """How many rows of each kind there are once the pages that keep something were opened."""
    names = ("report", "set", "criterion report", "disagreements", "cell", "chat")
    pages = [
        *(urls(compared)[name] for name in names),
        urls(compared)["report"] + "?split=dev",
        reverse("api_run_baselines", args=[compared.run.pk]),
        reverse("api_set_league", args=[compared.chat_set.pk]),
    ]
    plan = reverse("alignment:label_plan", args=[compared.run.pk])
    with documents_stored():
        for client in clients:
            for page in pages:
                assert client.get(page).status_code == 200, page
        assert clients[0].get(plan).status_code == 200  # for leads alone
    return Counter(Report.objects.values_list("kind", flat=True))


@pytest.mark.heavy
def test_however_many_labels_come_one_document_of_each_subject_stays(
    compared: Compared, lead: Client, author: Client
) -> None:
    judged(compared, "another", perfect)
    first = opened(compared, lead, author)
    # Counts and costs of versions: test_criterion_page and _list; no certificate is issued here.
    assert set(first) == set(Kind) - {Kind.MEASURED, Kind.COSTS, Kind.CERTIFIED}
    for n in range(1, 5):
        a_label_changes(compared, n)
        counts = opened(compared, lead, author)
        assert counts == first


def test_parts_without_a_chat_leave_nothing_behind(compared: Compared, lead: Client) -> None:
    for day in ("9999-12-31", "2999-01-01"):
        for page in ("report", "criterion report", "disagreements", "set", "api_run"):
            assert lead.get(urls(compared)[page], {"since": day}).status_code == 200
    assert lead.get(urls(compared)["api_run"], {"since": day}).json()["id"] is None
    assert lead.post(urls(compared)["api_run"] + f"?since={day}").status_code == 400
    assert not Report.objects.filter(kind__in=set(Kind) - {Kind.COVERED}).exists()


@pytest.mark.heavy
def test_a_stored_link_shows_the_same_whatever_was_kept_since(compared: Compared, lead: Client) -> None:
    judged(compared, "another", perfect)
    numbers = [stored(lead, compared), stored(lead, compared, "?split=dev")]
    links = [reverse("api_stored_report", args=[number]) for number in numbers]
    before = [lead.get(link).json() for link in links]
    for n in range(1, 4):
        a_label_changes(compared, n)
        opened(compared, lead)
    assert [lead.get(link).json() for link in links] == before


# ---------- one subject ----------


@pytest.fixture
def scope(compared: Compared) -> Scope:
    return Scope(compared.chat_set, Run.objects.get(pk=compared.run.pk))


def keep(scope: Scope, state: str, *, options: tuple[Any, ...] = (), says: str = "") -> dict[str, Any]:
    """The body of a document that knows these answers."""
    pin = pin_of(scope, state, options)
    body = {"says": says or state}
    with documents_stored():
        row = cached_document(scope, kind=Kind.LEAGUE, pin=pin, body=lambda: body, options=options)
    return dict(row.body)


def test_parts_grounds_and_options_are_subjects_of_their_own(scope: Scope) -> None:
    others: list[dict[str, Any]] = [
        {},
        {"split": "dev"},
        {"topic": "delivery"},
        {"only": "polite"},
        {"against": "each-rater"},
        {"without_holdout": frozenset({"dev"})},
    ]
    for state in ("before", "after"):
        for part in others:
            keep(Scope(scope.chat_set, scope.run, **part), state)
        keep(Scope(scope.chat_set), state)
        keep(scope, state, options=(1, 2))
    assert Report.objects.count() == len(others) + 2
    assert {row.body["says"] for row in Report.objects.all()} == {"after"}


def test_who_stores_what_another_has_just_stored_leaves_it_and_has_the_same(scope: Scope) -> None:
    def overtaken() -> dict[str, Any]:
        keep(scope, "answers")
        return {"says": "answers"}

    pin = pin_of(scope, "answers", ())
    with documents_stored():
        found = cached_document(scope, kind=Kind.LEAGUE, pin=pin, body=overtaken)
    assert found.body == {"says": "answers"}
    assert Report.objects.count() == 1


def test_a_slow_writer_takes_nothing_from_a_newer_one(scope: Scope) -> None:
    keep(scope, "oldest")

    def slow() -> dict[str, Any]:
        assert keep(scope, "newest") == {"says": "newest"}
        return {"says": "old"}

    with documents_stored():
        found = cached_document(scope, kind=Kind.LEAGUE, pin=pin_of(scope, "old", ()), body=slow)
    assert found.body == {"says": "old"}
    assert {row.body["says"] for row in Report.objects.all()} == {"old", "newest"}
    keep(scope, "after that")
    assert [row.body["says"] for row in Report.objects.all()] == ["after that"]


def test_a_document_that_cannot_be_computed_leaves_the_one_before_it(scope: Scope) -> None:
    keep(scope, "before")

    def broken() -> dict[str, Any]:
        raise ValueError

    with pytest.raises(ValueError):
        cached_document(scope, kind=Kind.LEAGUE, pin=pin_of(scope, "after", ()), body=broken)
    assert [row.body["says"] for row in Report.objects.all()] == ["before"]


def test_words_learned_for_one_run_stay_beside_those_of_a_run_over_other_chats(
    compared: Compared, lead: Client
) -> None:
    other = judged(compared, "another", perfect)
    other.run_chats.filter(chat=compared.chat(1)).delete()
    address = [reverse("api_run_baselines", args=[pk]) for pk in (compared.run.pk, other.pk)]
    for _ in range(2):
        for url in address:
            assert lead.post(url).status_code == 200
    learned = Report.objects.filter(kind=Kind.BASELINES, run=None)
    ids = set(learned.values_list("pk", flat=True))
    for url in address:
        lead.post(url)
    assert len(ids) == 2
    assert set(learned.values_list("pk", flat=True)) == ids


@pytest.mark.django_db(transaction=True)
def test_of_readers_at_once_one_computes_and_the_others_wait(compared: Compared) -> None:
    computed, scope = Semaphore(0), Scope(compared.chat_set, compared.run)
    pin = pin_of(scope, "at once")

    def body() -> dict[str, Any]:
        computed.release()
        sleep(0.2)
        return {"made": "once"}

    def read(_: int) -> dict[str, Any]:
        try:
            return dict(cached_document(scope, kind=Kind.CELLS, pin=pin, body=body).body)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, range(4)))
    assert found == [{"made": "once"}] * 4
    assert computed.acquire(blocking=False) and not computed.acquire(blocking=False)
