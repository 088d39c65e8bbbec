"""Imports change no account's answer unasked, no newer answer ever, and stand in the audit log."""

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Adjudication, Label, LabelRevision
from labeling.models.people import AuditEvent, Rater, User
from labeling.models.rubric import Criterion
from labeling.people.services.roles import rater_for
from labeling.transfer.services import labels as labels_service
from tests.factories.pages import page_text
from tests.factories.rows import make_chat, make_rubric
from tests.files import chat, criterion, decision, label, refused, rubric, run, write_json, write_jsonl

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
BEFORE, AFTER = "2026-11-01T11:00:00Z", "2026-11-01T13:00:00Z"
REPLACE, REPLACE_DECISIONS = "--replace-account-labels", "--replace-account-decisions"


@pytest.fixture
def own(rater_user: User) -> Label:
    """What the account mara answered at noon."""
    asked = Criterion.objects.get(key="polite")
    return Label.objects.create(
        chat=Chat.objects.get(external_id="c1"),
        criterion=asked,
        rater=rater_for(user=rater_user),
        version=asked.versions.get(),
        value=True,
        rationale="m2 thanks.",
        state=Label.State.SUBMITTED,
        given_at=NOON,
    )


@pytest.fixture(autouse=True)
def workspace(db: None) -> None:
    make_rubric("polite", "brief")
    for name in ("c1", "c2", "c3"):
        make_chat(name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def counts(command: str, path: Path, *options: str) -> tuple[int, int, int]:
    document = run(command, path, *options).document
    return document["created"], document["unchanged"], document["updated"]


def logged(verb: str) -> dict[str, Any]:
    """The detail of the one event, without the name of the system account."""
    event = AuditEvent.objects.get(verb=verb)
    assert event.actor is None
    detail: dict[str, Any] = event.detail
    return detail


# ---------- labels ----------


@pytest.mark.parametrize("state", [Label.State.SUBMITTED, Label.State.DRAFT])
def test_a_file_does_not_change_what_an_account_answered(path: Path, own: Label, state: str) -> None:
    Label.objects.update(state=state)
    before = Label.objects.values().get()
    rows = [label("c2"), label(value=False), label("c3")]
    message = refused("import_labels", write_jsonl(path, *rows))
    assert (
        "labels.jsonl line 2, rater: would change what the account 'mara' answered on c1 · polite" in message
    )
    assert REPLACE in message
    assert Label.objects.values().get() == before
    assert not AuditEvent.objects.exists()


def test_the_refusal_counts_the_lines_of_all_chunks(
    path: Path, own: Label, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels_service, "LINES_AT_ONCE", 1)
    for name in ("c2", "c3"):
        own.pk, own.chat = None, Chat.objects.get(external_id=name)
        own.save()
    rows = [label(name, value=False) for name in ("c1", "c2", "c3")]
    assert "line 1, rater: would change" in (message := refused("import_labels", write_jsonl(path, *rows)))
    assert "(2 more lines would change one, too)" in message


def test_the_same_answer_of_an_account_is_unchanged(path: Path, own: Label) -> None:
    line = label(rationale="m2 thanks.", created_at=AFTER)
    assert counts("import_labels", write_jsonl(path, line)) == (0, 1, 0)


def test_with_the_option_it_changes_and_the_log_keeps_both_answers(path: Path, own: Label) -> None:
    write_jsonl(path, label("c2", rater="slot1"), label(value=False, created_at=AFTER))
    assert counts("import_labels", path, REPLACE) == (1, 0, 1)
    own.refresh_from_db()
    assert (own.value, own.revision) == (False, 2)
    event = AuditEvent.objects.get(verb="label replaced")
    assert (event.object_type, event.object_id) == ("labeling.label", own.pk)
    assert {name: event.detail[name] for name in ("chat", "criterion", "account", "file")} == {
        "chat": "c1",
        "criterion": "polite",
        "account": "mara",
        "file": "labels.jsonl line 2",
    }
    states = [event.detail[side] for side in ("before", "after")]
    assert states == [
        {
            "value": "true",
            "rationale": "m2 thanks.",
            "state": "submitted",
            "given_at": "2026-11-01T12:00:00Z",
        },
        {"value": "false", "state": "submitted", "given_at": AFTER},
    ]
    assert event.detail["operator"] == getpass.getuser()
    assert logged("labels imported")["replaced"] == 1


@pytest.mark.parametrize("options", [(), (REPLACE,)])
def test_an_older_answer_never_replaces_a_newer_one(path: Path, own: Label, options: tuple[str, ...]) -> None:
    write_jsonl(path, label(value=False, created_at=BEFORE))
    answer = run("import_labels", path, *options)
    assert answer.document == {"created": 0, "unchanged": 1, "updated": 0}
    assert "1 labels not changed: the workspace has a newer answer" in answer.notes
    own.refresh_from_db()
    assert (own.value, own.revision) == (True, 1)
    assert logged("labels imported")["older"] == 1


def test_nor_among_raters_without_an_account(path: Path) -> None:
    at_noon = label(rater="slot1", created_at=NOON.isoformat())
    assert counts("import_labels", write_jsonl(path, at_noon)) == (1, 0, 0)
    for time, expected in ((BEFORE, (0, 1, 0)), (AFTER, (0, 0, 1))):
        line = at_noon | {"value": False, "created_at": time}
        assert counts("import_labels", write_jsonl(path, line)) == expected
    assert not AuditEvent.objects.filter(verb="label replaced").exists()


def test_a_dry_run_answers_the_same_and_writes_nothing(path: Path, own: Label) -> None:
    line = label(value=False)
    assert "would change" in refused("import_labels", write_jsonl(path, line), "--dry-run")
    answer = run("import_labels", write_jsonl(path, line, label("c2", rater="new")), REPLACE, "--dry-run")
    assert answer.document == {"created": 1, "unchanged": 0, "updated": 1}
    assert "dry run: nothing was written" in answer.notes
    assert [row.value for row in Label.objects.all()] == [True]
    assert not LabelRevision.objects.exists()
    assert not AuditEvent.objects.exists()
    assert not Rater.objects.filter(name="new").exists()


def test_the_log_hides_a_replaced_label_on_a_chat_that_its_reader_may_not_see(
    path: Path, own: Label, lead_user: User
) -> None:
    counts("import_labels", write_jsonl(path, label(value=False)), REPLACE)
    chat_set = ChatSet.objects.create(name="held", rubric=Criterion.objects.get(key="polite").rubric)
    ChatSetMember.objects.create(chat_set=chat_set, chat=own.chat, split="holdout", position=1)
    client = Client()
    client.force_login(lead_user)
    assert "Label replaced" in page_text(client.get("/workspace/log/"))
    lead_user.groups.get().permissions.filter(codename="see_holdout").delete()
    page = page_text(client.get("/workspace/log/"))
    assert "Labels imported" in page
    assert "Label replaced" not in page


# ---------- decisions ----------


@pytest.fixture
def decided(lead_user: User) -> Adjudication:
    """What the lead decided in the workbench at noon."""
    return Adjudication.objects.create(
        chat=Chat.objects.get(external_id="c1"),
        criterion=Criterion.objects.get(key="polite"),
        value=True,
        reason="m2.",
        by=lead_user,
        by_name="ines",
        created_at=NOON,
    )


def test_a_file_replaces_a_leads_decision_only_with_the_option(path: Path, decided: Adjudication) -> None:
    write_jsonl(path, decision(value=False, created_at=AFTER))
    message = refused("import_adjudications", path)
    assert (
        "line 1, adjudicated_by: would replace what 'ines' decided in the workbench on c1 · polite" in message
    )
    assert REPLACE_DECISIONS in message
    assert Adjudication.objects.get().replaced_at is None
    assert counts("import_adjudications", path, REPLACE_DECISIONS) == (0, 0, 1)
    detail = logged("adjudication replaced")
    assert (detail["before"]["value"], detail["after"]["value"]) == ("true", "false")
    assert (detail["before"]["adjudicated_by"], detail["after"]["adjudicated_by"]) == ("ines", "Ines")


def test_an_older_decision_never_replaces_a_newer_one(path: Path, decided: Adjudication) -> None:
    write_jsonl(path, decision(value=False, created_at=BEFORE))
    answer = run("import_adjudications", path, REPLACE_DECISIONS)
    assert answer.document == {"created": 0, "unchanged": 1, "updated": 0}
    assert "1 decisions not changed: the workspace has a newer one" in answer.notes
    assert Adjudication.objects.get().value is True


# ---------- the log ----------


def test_every_import_stands_in_the_log_with_who_file_and_counts(tmp_path: Path) -> None:
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "returns.md").write_text("# Returns\n14 days.")
    (tmp_path / "prompts").mkdir()
    files = {
        "chats": write_jsonl(tmp_path / "chats.jsonl", chat("n1"), chat("n2")),
        "labels": write_jsonl(tmp_path / "labels.jsonl", label("n1")),
        "adjudications": write_jsonl(tmp_path / "adjudications.jsonl", decision("n1")),
        "rubric": write_json(tmp_path / "rubric.json", rubric(criterion("kind"), name="Other")),
        "knowledge": tmp_path / "articles",
    }
    for what, file in files.items():
        run(f"import_{what}", file)
        detail = logged(f"{what} imported")
        assert (detail["file"], detail["operator"]) == (file.name, getpass.getuser())
        assert (detail["created"], detail["updated"]) == (2 if what == "chats" else 1, 0)
        run(f"import_{what}", file)
        newest = AuditEvent.objects.filter(verb=f"{what} imported").latest("pk").detail
        assert (newest["created"], newest["unchanged"]) == (0, detail["created"])


def test_an_import_of_chats_into_a_set_names_the_set(tmp_path: Path) -> None:
    run("import_chats", write_jsonl(tmp_path / "chats.jsonl", chat("n1")), "--set", "work")
    event = AuditEvent.objects.get(verb="chats imported")
    assert (event.object_type, event.object_id) == ("labeling.chatset", ChatSet.objects.get().pk)
