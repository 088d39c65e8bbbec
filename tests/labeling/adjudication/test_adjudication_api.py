"""API of adjudication: queue in pages, item, decision, withdrawal and the Dawid–Skene estimate."""

import json
import re
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from labeling.adjudication.services import adjudication_decide
from labeling.models.labels import Adjudication, Consensus
from labeling.models.people import Role, User
from tests.factories.many_labels import NAMES, Item, labelled_item
from tests.factories.rows import make_user
from tests.files import run

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


@pytest.fixture
def item() -> Item:
    return labelled_item(True, True, False)


def url(item: Item) -> str:
    return reverse("api_adjudicate", args=[item.chat.pk, item.criterion.key])


def put(client: Client, item: Item, **body: Any) -> Any:
    decision = {"value": False, "reason": "The bot did not answer."} | body
    return client.put(url(item), json.dumps(decision), content_type="application/json")


@pytest.mark.heavy
def test_the_queue_comes_in_pages_each_item_once_in_the_order_of_the_page(lead: Client) -> None:
    for n in range(104):
        labelled_item(True, False, *([True] if n % 2 else []))
    rows, address = [], reverse("api_adjudication_queue")
    while address:
        page = lead.get(address).json()
        rows += page["results"]
        address = page["next"]
    assert len({row["chat_id"] for row in rows}) == len(rows) == 104
    assert [row["state"] for row in rows] == ["unresolved"] * 52 + ["true"] * 52
    shown = lead.get(reverse("labeling:adjudication_queue")).context["items"]
    assert [row["chat_id"] for row in rows[:50]] == [item["row"].external_id for item in shown]


def test_a_row_has_the_address_of_its_item(lead: Client, item: Item) -> None:
    (row,) = lead.get(reverse("api_adjudication_queue") + "?kind=split&criterion=polite").json()["results"]
    assert row == {
        "url": url(item),
        "chat_id": "chat-1",
        "criterion": "polite",
        "topic": "unknown",
        "state": "true",
        "by": "majority",
        "n_true": 2,
        "n_false": 1,
        "n_na": 0,
        "flagged": False,
    }


def test_a_filter_with_an_unknown_name_is_400_by_field(lead: Client) -> None:
    response = lead.get(reverse("api_adjudication_queue") + "?kind=nonsense&set=9")
    assert (response.status_code, set(response.json())) == (400, {"kind", "set"})


def test_an_item_shows_labels_with_letters_instead_of_names(lead: Client, item: Item) -> None:
    response = lead.get(url(item))
    body = response.json()
    assert (body["chat_id"], body["criterion"], body["state"], body["by"]) == (
        "chat-1",
        "polite",
        "true",
        "majority",
    )
    assert [label["rater"] for label in body["labels"]] == ["A", "B", "C"]
    assert sorted(label["value"] for label in body["labels"]) == [False, True, True]
    assert (body["decision"], body["history"], body["left_out"], body["notes"]) == (None, [], 0, [])
    assert not [name for name in NAMES if re.search(rf"\b{name}\b", response.content.decode())]


def test_a_decision_is_put_replaced_and_withdrawn(lead: Client, item: Item) -> None:
    first = put(lead, item).json()
    assert (first["value"], first["adjudicated_by"], first["replaced_at"]) == (False, "ines", None)
    assert put(lead, item).json() == first
    second = put(lead, item, value=True, reason="Polite.", seen=first["id"]).json()
    body = lead.get(url(item)).json()
    assert (body["state"], body["by"], body["decision"]) == ("true", "adjudication", second)
    assert [row["id"] for row in body["history"]] == [first["id"]]
    assert lead.delete(url(item) + f"?seen={second['id']}").status_code == 204
    assert Consensus.objects.get().by == "majority"
    assert lead.delete(url(item) + f"?seen={second['id']}").status_code == 204


def test_a_newer_decision_is_409_with_that_decision(lead: Client, item: Item) -> None:
    other = make_user("otto", Role.LEAD)
    first = adjudication_decide(
        chat=item.chat, criterion=item.criterion, value=True, reason="Polite.", by=other, seen=None
    )
    response = put(lead, item)
    assert response.status_code == 409
    assert (response.json()["code"], response.json()["decision"]["id"]) == ("stale", first.pk)
    assert response.json()["decision"]["adjudicated_by"] == "otto"
    assert lead.delete(url(item) + "?seen=1000").status_code == 409
    assert Adjudication.objects.get() == first


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"value": "yes"}, "value"),
        ({"value": 1}, "value"),
        ({"value": None}, "value"),
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 10_001}, "reason"),
        ({"seen": "x"}, "seen"),
    ],
)
def test_invalid_input_is_refused_by_field(
    lead: Client, item: Item, body: dict[str, Any], field: str
) -> None:
    response = put(lead, item, **body)
    assert (response.status_code, list(response.json())) == (400, [field])
    assert lead.delete(url(item)).status_code == 400
    assert not Adjudication.objects.exists()


def test_the_estimate_comes_with_the_consensus(lead: Client, item: Item) -> None:
    for _ in range(5):
        labelled_item(True, True, True)
        labelled_item(False, False, False)
    before = list(Consensus.objects.values())
    body = lead.get(reverse("api_dawid_skene", args=[item.chat_set.pk, "polite"])).json()
    assert (body["set"], body["criterion"], body["labels"], body["reason"]) == (
        "calibration",
        "polite",
        33,
        "",
    )
    assert body["converged"] is True
    assert body["shares"]["true"] + body["shares"]["false"] == pytest.approx(1)
    assert [row["rater"] for row in body["raters"]] == ["Amira", "Basil", "Cleo"]
    assert body["raters"][0]["specificity"] > 0.9
    first = next(row for row in body["chats"] if row["chat_id"] == "chat-1")
    assert (first["dawid_skene"], first["consensus"], first["by"]) == ("true", "true", "majority")
    assert 0.5 < first["probability"] <= 1
    assert len(body["chats"]) == 11
    assert list(Consensus.objects.values()) == before


def test_estimates_come_in_pages(lead: Client) -> None:
    items = [labelled_item(True, True, False) for _ in range(5)]
    at: str | None = reverse("api_dawid_skene", args=[items[0].chat_set.pk, "polite"]) + "?page_size=2"
    pages: list[list[str]] = []
    while at:
        body = lead.get(at).json()
        assert body["labels"] == 15
        pages.append([row["chat_id"] for row in body["chats"]])
        at = body["next"]
    assert pages == [["chat-1", "chat-2"], ["chat-3", "chat-4"], ["chat-5"]]


def test_without_enough_raters_there_is_a_reason_and_no_estimate(lead: Client) -> None:
    item = labelled_item(True, False)
    body = lead.get(reverse("api_dawid_skene", args=[item.chat_set.pk, "polite"])).json()
    assert (body["reason"], body["chats"], body["labels"]) == ("fewer than 3 raters", [], 2)
    assert lead.get(reverse("api_dawid_skene", args=[item.chat_set.pk, "kind"])).status_code == 404


@pytest.mark.parametrize("who", ["rater_user", "author_user"])
def test_raters_and_authors_get_404(who: str, item: Item, request: pytest.FixtureRequest) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(who))
    estimate = reverse("api_dawid_skene", args=[item.chat_set.pk, "polite"])
    for address in (reverse("api_adjudication_queue"), url(item), estimate):
        assert client.get(address).status_code == 404
    assert put(client, item).status_code == 404
    assert client.delete(url(item) + "?seen=1").status_code == 404


def test_holdout_chats_require_the_permission_to_see_them(lead: Client, lead_user: User) -> None:
    item = labelled_item(True, False, True, split="holdout")
    group = lead_user.groups.get()
    group.permissions.remove(group.permissions.get(codename="see_holdout"))
    assert lead.get(url(item)).status_code == 404
    assert put(lead, item).status_code == 404
    assert lead.get(reverse("api_adjudication_queue")).json()["results"] == []
    assert lead.get(reverse("api_dawid_skene", args=[item.chat_set.pk, "polite"])).json()["chats"] == []


def test_decisions_are_exported_and_imported_unchanged(lead: Client, item: Item, tmp_path: Any) -> None:
    put(lead, item)
    other = labelled_item(True, False)
    gone = put(lead, other).json()
    lead.delete(url(other) + f"?seen={gone['id']}")
    path = tmp_path / "adjudications.jsonl"
    call_command("export", "adjudications", "--set", "calibration", "-o", str(path), "--json")
    (line,) = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    assert (line["chat_id"], line["adjudicated_by"], line["value"]) == ("chat-1", "ines", False)
    assert run("import_adjudications", path).document["unchanged"] == 1
