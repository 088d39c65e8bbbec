"""Chats of several disagreements added to a chat set."""

from typing import Any

import pytest
from django.test import Client

from alignment.misalignments.worker import misalignments_refresh
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import AuditEvent
from tests.factories.compared_runs import Compared
from tests.factories.rows import make_rubric, make_set
from tests.factories.triage import API, item_on

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def scanned(compared: Compared) -> None:
    misalignments_refresh(compared.run)


def add(client: Client, *places: int, **body: object) -> Any:
    items = [item_on(n).pk for n in places]
    values = {"misalignments": items, "set": "Hard chats", "new": True, "split": "dev"} | body
    return client.post(f"{API}to_set/", values, content_type="application/json")


def members(name: str = "Hard chats") -> list[tuple[str, str]]:
    rows = ChatSetMember.objects.filter(chat_set__name=name).order_by("position")
    return list(rows.values_list("chat__external_id", "split"))


def test_selected_chats_make_a_new_set(compared: Compared, lead: Client) -> None:
    body = add(lead, 5, 10).json()
    row = ChatSet.objects.get(name="Hard chats")
    assert body == {"set": "Hard chats", "url": f"/sets/{row.pk}/", "added": 2, "kept": 0}
    assert members() == [("chat-5", "dev"), ("chat-10", "dev")]
    assert row.rubric == compared.rubric
    assert AuditEvent.objects.get(verb="chats added").object_id == row.pk


def test_a_set_grows_and_keeps_the_splits_of_its_chats(compared: Compared, lead: Client) -> None:
    make_set(compared.rubric, compared.chat(5), name="Known", split="train")
    assert add(lead, 5, 10, 15, set="Known", new=False).json()["kept"] == 1
    assert members("Known") == [("chat-5", "train"), ("chat-10", "dev"), ("chat-15", "dev")]


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"set": "calibration"}, "set", "There is a set 'calibration' already."),
        ({"new": False}, "set", "There is no set 'Hard chats'."),
        ({"set": "  "}, "set", "blank"),
        ({"set": "Sampled", "new": False}, "set", "random sample"),
        ({"set": "Other", "new": False}, "set", "another rubric"),
        ({"split": "holdout"}, "split", "not a valid choice"),
        ({"misalignments": []}, "misalignments", "may not be empty"),
        ({"misalignments": [999_999]}, "misalignments", "does not exist"),
    ],
)
def test_what_does_not_fit_is_refused(
    compared: Compared, lead: Client, change: dict[str, object], field: str, words: str
) -> None:
    ChatSet.objects.create(name="Sampled", rubric=compared.rubric, kind="sample")
    make_set(make_rubric("other", name="Other rubric"), name="Other")
    before = ChatSetMember.objects.count()
    refused = add(lead, 5, **change)
    assert refused.status_code == 400
    assert words in " ".join(str(one) for one in refused.json()[field])
    assert ChatSetMember.objects.count() == before


def test_no_holdout_chat_becomes_a_source_of_examples(compared: Compared, lead: Client) -> None:
    refused = add(lead, 5, 20, split="train")  # chat 20 is holdout
    assert refused.status_code == 400 and "holdout" in refused.json()["set"][0]
    assert add(lead, 5, 20).json()["added"] == 2


def test_only_leads_change_chat_sets(compared: Compared, author: Client) -> None:
    assert add(author, 5).status_code == 404
