"""The raters' labels on a chat set: exported whole, stable ids, safe for spreadsheets, holdout excluded."""

import csv
import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from common.files import csv_lines
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelRevision, RaterNote
from labeling.models.people import AuditEvent, Rater, User
from labeling.people.services.tokens import token_create
from labeling.rating.services.answers import label_save
from labeling.rating.services.leases import assignment_skip
from labeling.rating.services.submission import assignment_submit
from labeling.transfer.queries.exports import LABELLING
from tests.factories.labelling_job import Desk, answer_all, grow, make_desk, user_of
from tests.factories.rows import make_rater
from tests.files import decision, label, refused, run, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    """A chat submitted after a change of mind, a note on it, a decision; the third chat is holdout."""
    desk = make_desk(chats=3, raters=2, overlap=2)
    desk.chat_set.members.filter(position=3).update(split="holdout")
    assignment = desk.taken()
    label_save(
        assignment=assignment,
        rater=desk.rater,
        criterion=desk.criteria[0],
        value=False,
        rationale="=cmd()",
        turns=[2],
        evidence=[{"message": 1, "start": 0, "end": 5}],
        client_id=uuid.uuid4(),
        active_ms=1500,
    )
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)
    note = {"rater": desk.rater, "chat": assignment.chat, "client_id": uuid.uuid4()}
    RaterNote.objects.create(kind="flag", text="@lead: look", **note)
    Adjudication.objects.create(
        chat=assignment.chat,
        criterion=desk.criteria[0],
        value=True,
        reason="m2.",
        by_name="Ines",
        created_at=timezone.now(),
    )
    consensus_refresh(criterion_ids={desk.criteria[0].pk}, chat_ids={assignment.chat_id})
    return desk


def exported(what: str, *args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(what, *args).splitlines()]


def text_of(what: str, *args: str) -> str:
    out = io.StringIO()
    call_command("export", what, "--set", "calibration", *args, stdout=out)
    return out.getvalue()


def table(text: str) -> list[dict[str, str]]:
    """The rows of a table; NB: a spreadsheet knows by the mark before its header that it is UTF-8."""
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


# ---------- what is in it ----------


def test_revisions_are_the_whole_history_under_the_clients_own_ids(desk: Desk) -> None:
    rows = [row for row in exported("revisions") if row["criterion"] == "polite"]
    assert [(row["number"], row["value"], row["state"]) for row in rows] == [
        (1, False, "draft"),
        (2, True, "draft"),
        (3, True, "submitted"),
    ]
    assert rows[0]["chat_id"] == "chat-1"
    assert rows[0]["rater"] == "mara"
    assert rows[0]["turns"] == [2]
    assert rows[0]["evidence"] == [{"message": 1, "start": 0, "end": 5, "quote": "Where"}]
    assert (
        uuid.UUID(rows[0]["client_id"])
        == LabelRevision.objects.get(label__criterion=desk.criteria[0], number=1).client_id
    )


def test_notes_and_assignments_go_by_the_names_of_the_files(desk: Desk) -> None:
    (note,) = exported("notes")
    assert {name: note[name] for name in ("chat_id", "rater", "kind", "text")} == {
        "chat_id": "chat-1",
        "rater": "mara",
        "kind": "flag",
        "text": "@lead: look",
    }
    rows = exported("assignments")
    assert len(rows) == Assignment.objects.count() == 6
    done = [row for row in rows if row["state"] == "submitted"]
    assert [(row["job"], row["chat_id"], row["slot"], row["rater"]) for row in done] == [
        ("October", "chat-1", 1, "mara")
    ]
    assert done[0]["submitted_at"].endswith("Z")


def test_every_try_at_a_chat_and_every_revision_has_an_id_of_its_own(desk: Desk, tmp_path: Path) -> None:
    """A chat skipped by one rater and taken by the next has one slot, an import's revisions one client_id."""
    first, second = desk.taken(), desk.taken(desk.raters[1])
    assignment_skip(assignment=first, rater=desk.rater, reason="too_long")
    answer_all(second)
    lines = [label("chat-2"), label("chat-2", "correct")]
    run("import_labels", write_jsonl(tmp_path / "labels.jsonl", *lines))
    tries, revisions = exported("assignments"), exported("revisions")
    assert {row["id"] for row in tries} == set(Assignment.objects.values_list("pk", flat=True))
    assert {row["id"] for row in revisions} == set(LabelRevision.objects.values_list("pk", flat=True))
    assert len({row["id"] for row in tries}) == len(tries) > 6
    assert len({row["id"] for row in revisions}) == len(revisions)
    assert next(row for row in tries if row["id"] == first.pk)["skip_reason"] == "too_long"


def test_labels_exported_and_imported_again_are_the_same_rows(desk: Desk, tmp_path: Path) -> None:
    lines = [
        label("chat-2", turns=[2], rationale="'=1+1", rater="auto", kind="automatic", active_ms=1234),
        label("chat-2", "correct", value=None, version=1, post_reveal=True),
    ]
    run("import_labels", write_jsonl(tmp_path / "labels.jsonl", *lines))
    run("import_adjudications", write_jsonl(tmp_path / "a.jsonl", decision("chat-2", value=False)))
    files = {what: tmp_path / f"{what}.out.jsonl" for what in ("labels", "adjudications")}
    for what, path in files.items():
        run("export", what, "--set", "calibration", "-o", path)
    before = people_said()
    for model in (Consensus, Adjudication, LabelRevision, Label):
        model._default_manager.all().delete()
    RaterNote.objects.all().delete()
    Assignment.objects.all().delete()
    desk.job.raters.clear()
    Rater.objects.all().delete()
    for what, path in files.items():
        run(f"import_{what}", path)
    assert people_said() == before


def people_said() -> dict[str, list[Any]]:
    """Every column of the labels, except the database's own ids and how a label came in."""
    cell = ("chat__external_id", "criterion__key")
    rater = ("rater__name", "rater__kind")
    answer = ("value", "rationale", "evidence", "state", "post_reveal", "version__number", "given_at")
    return {
        "labels": list(
            Label.objects.order_by(*cell, *rater).values_list(*cell, *rater, *answer, "active_ms")
        ),
        "adjudications": list(
            Adjudication.objects.order_by(*cell).values_list(
                *cell, "value", "reason", "by_name", "created_at"
            )
        ),
        "consensus": list(
            Consensus.objects.order_by(*cell).values_list(*cell, "state", "by", "n_true", "n_false", "n_na")
        ),
    }


# ---------- spreadsheets ----------

PAYLOADS = [
    start + rest
    for start in ("=", "+", "-", "@", "\t", "\r", "\n", "'", '"', ",")
    for rest in ("cmd|' /C calc'!A0", '1+1",=2', "x\r\n=y", "'=1", "")
]


def test_fifty_payloads_are_no_formula_and_come_back_whole() -> None:
    assert len(set(PAYLOADS)) == 50
    text = "".join(csv_lines([{"text": payload} for payload in PAYLOADS], ["text"]))
    cells = [row["text"] for row in table(text)]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")]
    assert [cell.removeprefix("'") for cell in cells] == PAYLOADS


def test_a_table_says_not_applicable_and_keeps_evidence_as_json(desk: Desk) -> None:
    Label.objects.filter(criterion=desk.criteria[1]).update(value=None)
    Label.objects.filter(criterion=desk.criteria[0]).update(rationale="=cmd()")
    first, second = table(text_of("labels", "--format", "csv"))
    assert (first["value"], second["value"]) == ("true", "not_applicable")
    assert first["rationale"] == "'=cmd()"
    assert json.loads(table(text_of("revisions", "--format", "csv"))[0]["evidence"])[0]["quote"] == "Where"


@pytest.mark.parametrize("what", [*LABELLING, "verdicts"])
def test_every_table_has_a_column_for_every_field(desk: Desk, tmp_path: Path, what: str) -> None:
    path = tmp_path / "out.csv"
    answer = run("export", what, "--set", "calibration", "--format", "csv", "-o", path).document
    rows, lines = table(path.read_text(encoding="utf-8")), exported(what)
    assert answer["exported"] == len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert line.keys() <= row.keys()


def test_a_dialogue_is_no_table(desk: Desk) -> None:
    assert "--format: chats cannot be exported as csv" in refused(
        "export", "chats", "--set", "calibration", "--format", "csv"
    )


# ---------- the download ----------


def download(user: User, desk: Desk, what: str, kind: str = "jsonl", *scopes: str) -> Any:
    granted = scopes or ("manage_labeling", "see_holdout")
    secret = token_create(user=user, name=str(uuid.uuid4()), scopes=granted, days=1).secret
    url = reverse("api_export", args=[desk.chat_set.pk, what, kind])
    return Client().get(url, headers={"Authorization": f"Token {secret}", "Accept": "text/csv"})


def body(response: Any) -> str:
    assert isinstance(response, StreamingHttpResponse)
    parts = response.streaming_content
    assert isinstance(parts, Iterator)
    return b"".join(parts).decode()


@pytest.mark.parametrize("what", LABELLING)
def test_a_lead_downloads_what_the_command_writes(desk: Desk, lead_user: User, what: str) -> None:
    response = download(lead_user, desk, what)
    assert response.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert (
        f'attachment; filename="set-{desk.chat_set.pk}-{what}.jsonl"'
        in response.headers["Content-Disposition"]
    )
    assert body(response) == text_of(what)
    tabled = download(lead_user, desk, what, "csv")
    assert tabled.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert body(tabled) == text_of(what, "--format", "csv")


def test_a_download_is_on_record(desk: Desk, lead_user: User) -> None:
    body(download(lead_user, desk, "labels"))
    event = AuditEvent.objects.get(verb="set exported")
    assert (event.actor, event.object_id) == (lead_user, desk.chat_set.pk)
    assert event.detail == {"what": "labels", "format": "jsonl"}


@pytest.mark.parametrize("what", LABELLING)
def test_without_the_right_to_holdout_its_chats_are_not_in_it(desk: Desk, lead_user: User, what: str) -> None:
    held = desk.chats[2]
    for criterion in desk.criteria:
        other = {"chat": held, "criterion": criterion}
        row = Label.objects.create(
            rater=make_rater(),
            version=criterion.versions.get(),
            value=True,
            state="submitted",
            given_at=timezone.now(),
            **other,
        )
        LabelRevision.objects.create(
            label=row, number=1, client_id=uuid.uuid4(), version=row.version, created_at=timezone.now()
        )
        Adjudication.objects.create(value=True, reason="r", by_name="I", created_at=timezone.now(), **other)
    RaterNote.objects.create(chat=held, rater=desk.rater, kind="flag", text="x", client_id=uuid.uuid4())
    assert held.external_id in body(download(lead_user, desk, what))
    assert held.external_id not in body(download(lead_user, desk, what, "jsonl", "manage_labeling"))


def test_only_a_lead_finds_a_download_and_only_of_what_there_is(
    desk: Desk, lead_user: User, author_user: User
) -> None:
    url = reverse("api_export", args=[desk.chat_set.pk, "labels", "jsonl"])
    for user in (author_user, user_of(desk.rater)):
        client = Client()
        client.force_login(user)
        assert client.get(url).status_code == 404
    for wrong in (("chats", "jsonl"), ("labels", "xlsx")):
        assert download(lead_user, desk, *wrong).status_code == 404


def test_the_page_of_a_set_offers_the_downloads_to_leads(
    desk: Desk, lead_user: User, author_user: User
) -> None:
    url = reverse("api_export", args=[desk.chat_set.pk, "labels", "csv"])
    for user, offered in ((lead_user, True), (author_user, False)):
        client = Client()
        client.force_login(user)
        page = client.get(reverse("labeling:set_detail", args=[desk.chat_set.pk])).content.decode()
        assert (f'href="{url}"' in page) is offered


@pytest.mark.parametrize("what", LABELLING)
def test_an_export_asks_as_often_for_a_hundred_chats_as_for_three(desk: Desk, what: str) -> None:
    counts = []
    for size in (3, 100):
        if size > 3:
            grow(desk, to=size)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            sum(1 for _ in LABELLING[what][0](desk.chat_set, None))
        counts.append(len(queries))
    assert counts[0] == counts[1]
