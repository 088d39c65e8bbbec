"""Pages of notes: the raters' words, with the text of that time beside the text now; settling."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.rating.services.notes import note_add
from tests.factories.guidelines import reword
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.pages import page_text

pytestmark = pytest.mark.django_db

LIST = "/notes/"


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=2, raters=2)


@pytest.fixture
def lead(lead_user: User) -> Client:
    return signed_in(lead_user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def note(desk: Desk, kind: str = "unclear", **values: Any) -> RaterNote:
    named: dict[str, Any] = {"criterion": desk.criteria[0]} if kind == "unclear" else {}
    given = named | {"client_id": uuid.uuid4(), "text": "Hm"} | values
    return note_add(rater=desk.rater, assignment=desk.taken(), kind=kind, **given).note


def texts_shown(client: Client, **query: str) -> list[str]:
    return [row.note.text for row in client.get(LIST, query).context["rows"]]


def test_an_unclear_criterion_is_shown_with_its_text_of_today(desk: Desk, lead: Client) -> None:
    note(desk, text="What of <i>irony</i>?\u202e")
    still = page_text(lead.get(LIST))
    assert "still current" in still
    reword(desk.criteria[0], definition="True unless it mocks.")
    shown = page_text(lead.get(LIST))
    assert "Then: version 1" in shown
    assert "Now: version 2" in shown
    assert "True when polite." in shown
    assert "True unless it mocks." in shown
    assert "&lt;i&gt;irony&lt;/i&gt;" in shown
    assert "RLO" in shown


def test_a_lead_narrows_by_kind_criterion_and_state(desk: Desk, lead: Client) -> None:
    note(desk, text="1")
    note(desk, text="2", criterion=desk.criteria[1])
    note(desk, "flag", text="3")
    settled = note(desk, "comment", text="4")
    lead.post(reverse("labeling:note_settle", args=[settled.pk]))
    assert texts_shown(lead) == ["3", "2", "1"]
    assert texts_shown(lead, kind="unclear") == ["1", "2"]
    assert texts_shown(lead, criterion="correct") == ["2"]
    assert texts_shown(lead, state="settled") == ["4"]
    assert texts_shown(lead, state="") == ["4", "3", "2", "1"]
    assert texts_shown(lead, kind="nonsense", state="nonsense", page="x") == ["3", "2", "1"]
    assert "3 open rater notes" in page_text(lead.get(LIST))
    assert "No note matches this filter" in page_text(lead.get(LIST, {"criterion": "nonsense"}))


def test_a_note_is_settled_from_the_list_which_keeps_its_filter(desk: Desk, lead: Client) -> None:
    kept = note(desk, "flag")
    url = reverse("labeling:note_settle", args=[kept.pk])
    assert f'action="{url}?kind=flag"' in page_text(lead.get(LIST, {"kind": "flag"}))
    answer = lead.post(f"{url}?kind=flag")
    assert answer.headers["Location"] == "/notes/?kind=flag"
    kept.refresh_from_db()
    assert kept.settled_by is not None
    shown = page_text(lead.get(LIST, {"state": "settled"}))
    assert "Settled by ines" in shown
    assert lead.get(url).status_code == 405


def test_a_note_opens_beside_its_chat(desk: Desk, lead: Client) -> None:
    kept = note(desk, "flag", text="Look here")
    shown = page_text(lead.get(reverse("labeling:note_detail", args=[kept.pk])))
    assert "Look here" in shown
    assert str(kept.chat.messages[0]["content"]) in shown


def test_an_author_has_the_unclear_criteria_and_nothing_of_holdout(desk: Desk, author_user: User) -> None:
    author = signed_in(author_user)
    kept, flag = note(desk), note(desk, "flag", text="For the lead")
    assert texts_shown(author) == texts_shown(author, kind="flag") == ["Hm"]
    assert author.get(reverse("labeling:note_detail", args=[flag.pk])).status_code == 404
    assert author.post(reverse("labeling:note_settle", args=[flag.pk])).status_code == 404
    desk.chat_set.members.filter(chat=kept.chat).update(split="holdout")
    assert texts_shown(author) == []
    assert "No open note" in page_text(author.get(LIST))
    assert author.get(reverse("labeling:note_detail", args=[kept.pk])).status_code == 404


def test_raters_have_none_of_it(desk: Desk) -> None:
    kept = note(desk)
    rater = signed_in(user_of(desk.rater))
    for url in (LIST, reverse("labeling:note_detail", args=[kept.pk])):
        assert rater.get(url).status_code == 404
    assert rater.post(reverse("labeling:note_settle", args=[kept.pk])).status_code == 404


@pytest.mark.heavy
def test_the_list_takes_the_same_number_of_queries_with_many_notes(desk: Desk, lead: Client) -> None:
    reword(desk.criteria[0], definition="True unless it mocks.")
    counts = []
    for more in (3, 200):
        template = note(desk, version=1)
        RaterNote.objects.bulk_create(
            RaterNote(
                rater=desk.rater,
                chat=template.chat,
                criterion=template.criterion,
                version=template.version,
                kind="unclear",
                text="Hm",
                client_id=uuid.uuid4(),
            )
            for _ in range(more)
        )
        lead.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            assert lead.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
