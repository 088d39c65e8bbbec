"""Notes of raters: added once, with the text as it stood; read and settled by those they are for."""

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.labels import Assignment, RaterNote
from labeling.models.people import AuditEvent, Role, User
from labeling.rating.queries.notes import own_notes
from labeling.rating.services.notes import note_add
from tests.factories.guidelines import reword
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def post(client: Client, assignment: Assignment, **body: Any) -> Any:
    given = {"client_id": str(uuid.uuid4()), "kind": "flag"} | body
    url = reverse("api_assignment_notes", args=[assignment.pk])
    return client.post(url, json.dumps(given), content_type="application/json")


def note(desk: Desk, **values: Any) -> RaterNote:
    """One by the first rater on their chat in work."""
    given: dict[str, Any] = {
        "kind": "unclear",
        "criterion": desk.criteria[0],
        "client_id": uuid.uuid4(),
    } | values
    return note_add(rater=desk.rater, assignment=desk.taken(), **given).note


# ---------- adding ----------


def test_an_unclear_criterion_is_noted_with_its_text_of_that_time(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    answer = post(rater, assignment, kind="unclear", criterion="polite", text="What of irony?")
    assert answer.status_code == 201, answer.json()
    reword(desk.criteria[0], definition="True unless it mocks.")
    kept = RaterNote.objects.select_related("version").get()
    assert (kept.chat, kept.rater, kept.kind) == (assignment.chat, desk.rater, "unclear")
    assert (kept.version and kept.version.number, kept.text) == (1, "What of irony?")
    assert answer.json() == {
        "id": kept.pk,
        "kind": "unclear",
        "criterion": "polite",
        "version": 1,
        "text": "What of irony?",
        "created_at": answer.json()["created_at"],
        "settled": False,
    }


def test_the_version_is_the_one_that_the_rater_had_before_them(desk: Desk, rater: Client) -> None:
    reword(desk.criteria[0], definition="True unless it mocks.")
    for version, kept in ((1, 1), (None, 2)):
        more = {} if version is None else {"version": version}
        answer = post(rater, desk.taken(), kind="unclear", criterion="polite", **more)
        assert answer.json()["version"] == kept


def test_the_same_note_sent_again_is_kept_once(desk: Desk, rater: Client) -> None:
    assignment, body = desk.taken(), {"client_id": str(uuid.uuid4()), "kind": "comment", "text": "Long."}
    first, again = (post(rater, assignment, **body) for _ in range(2))
    assert (first.status_code, again.status_code, RaterNote.objects.count()) == (201, 200, 1)
    assert first.json() == again.json()
    other = post(rater, assignment, **body | {"text": "Short."})
    assert (other.status_code, other.json()["code"]) == (409, "client_id_used")


def test_a_rater_may_note_two_hundred_things_on_a_chat(desk: Desk, rater: Client) -> None:
    assignment, first = desk.taken(), str(uuid.uuid4())
    assert post(rater, assignment, kind="flag", client_id=first).status_code == 201
    RaterNote.objects.bulk_create(
        RaterNote(rater=desk.rater, chat=assignment.chat, kind="flag", client_id=uuid.uuid4())
        for _ in range(199)
    )
    refused = post(rater, assignment, kind="flag")
    assert (refused.status_code, set(refused.json())) == (400, {"text"})
    assert post(rater, assignment, kind="flag", client_id=first).status_code == 200


def test_a_rater_reads_their_own_notes_with_the_chat_and_nobody_elses(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    post(rater, assignment, kind="unclear", criterion="polite", text="Of what?")
    post(rater, assignment, kind="flag")
    RaterNote.objects.create(
        rater=desk.raters[1], chat=assignment.chat, kind="comment", text="Mine.", client_id=uuid.uuid4()
    )
    shown = rater.get(reverse("api_assignment", args=[assignment.pk])).json()["notes"]
    assert [(row["kind"], row["criterion"], row["text"]) for row in shown] == [
        ("unclear", "polite", "Of what?"),
        ("flag", None, ""),
    ]
    assert all(set(row) == {"kind", "criterion", "text", "at"} for row in shown)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "unclear"}, "criterion"),
        ({"kind": "comment", "text": "  "}, "text"),
        ({"kind": "praise"}, "kind"),
        ({"kind": "unclear", "criterion": "polite", "version": 9}, "version"),
        ({"kind": "flag", "text": "x" * 4001}, "text"),
        ({"kind": "flag", "client_id": "1"}, "client_id"),
    ],
    ids=str,
)
def test_a_note_that_says_nothing_is_refused(
    desk: Desk, rater: Client, body: dict[str, object], field: str
) -> None:
    answer = post(rater, desk.taken(), **body)
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not RaterNote.objects.exists()


def test_a_criterion_that_the_job_does_not_ask_and_a_chat_of_another_do_not_exist(
    desk: Desk, rater: Client
) -> None:
    assert post(rater, desk.taken(), kind="unclear", criterion="nonsense").status_code == 404
    assert post(rater, desk.taken(desk.raters[1])).status_code == 404


def test_a_rater_finds_their_own_notes_on_a_chat_and_nobody_elses(desk: Desk) -> None:
    own = note(desk, kind="flag", criterion=None, text="Rude customer.")
    RaterNote.objects.create(
        rater=desk.raters[1], chat=own.chat, kind="flag", text="Mine", client_id=uuid.uuid4()
    )
    assert own_notes(assignment=desk.taken()) == [own]


# ---------- reading and settling ----------


def listed(user: User, **query: str) -> Any:
    return signed_in(user).get(reverse("api_notes"), query)


def test_a_lead_reads_all_notes_newest_first_and_narrows_them(desk: Desk, lead_user: User) -> None:
    notes = [
        note(desk, text="1"),
        note(desk, kind="flag", criterion=None),
        note(desk, kind="comment", text="3"),
    ]
    rows = listed(lead_user).json()["results"]
    assert [row["id"] for row in rows] == [row.pk for row in reversed(notes)]
    assert (rows[2]["chat"], rows[2]["rater"], rows[2]["settled_by"]) == ("chat-1", "mara", None)
    for query, found in (
        ({"kind": "flag"}, [notes[1]]),
        ({"criterion": "polite"}, [notes[2], notes[0]]),
        ({"state": "settled"}, []),
    ):
        rows = listed(lead_user, **query).json()["results"]
        assert [row["id"] for row in rows] == [row.pk for row in found]
    assert listed(lead_user, kind="praise").status_code == 400


def test_an_author_reads_unclear_criteria_only_and_nothing_of_a_holdout_chat(
    desk: Desk, author_user: User
) -> None:
    unclear = note(desk)
    note(desk, kind="flag", criterion=None)
    assert [row["id"] for row in listed(author_user).json()["results"]] == [unclear.pk]
    desk.chat_set.members.filter(chat=unclear.chat).update(split="holdout")
    assert listed(author_user).json()["results"] == []
    settle = reverse("api_note_settle", args=[unclear.pk])
    assert signed_in(author_user).post(settle).status_code == 404


def test_a_note_is_settled_once_with_an_audit_event(desk: Desk, lead_user: User, author_user: User) -> None:
    kept = note(desk)
    url = reverse("api_note_settle", args=[kept.pk])
    first = signed_in(lead_user).post(url).json()
    assert (first["settled"], first["settled_by"]) == (True, "ines")
    assert signed_in(author_user).post(url).json() == first
    event = AuditEvent.objects.get(object_type="labeling.raternote")
    assert (event.actor, event.verb, event.object_id) == (lead_user, "note settled", kept.pk)


def test_raters_can_neither_list_nor_settle(desk: Desk, rater: Client) -> None:
    kept = note(desk)
    assert rater.get(reverse("api_notes")).status_code == 404
    assert rater.post(reverse("api_note_settle", args=[kept.pk])).status_code == 404
    assert listed(make_user("nobody")).status_code == 404


@pytest.mark.heavy
def test_the_list_takes_the_same_number_of_queries_with_50_notes(desk: Desk, lead_user: User) -> None:
    counts = []
    for more in (2, 48):
        for _ in range(more):
            note(desk, text="Hm")
        client = signed_in(lead_user)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse("api_notes")).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_role_of_rater_and_lead_does_both(desk: Desk) -> None:
    both = make_user("both", Role.RATER, Role.LEAD)
    assert listed(both).status_code == 200
