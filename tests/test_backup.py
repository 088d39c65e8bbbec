"""A backup holds one moment and no secret of an endpoint; a restore is whole or nothing."""

import io
import json
import shlex
import sqlite3
import stat
import threading
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from alignment.certificates.queries.certificates import certificate_verified
from alignment.models.certificates import Certificate
from evaluation.models.runs import Run, Unit, WorkerLease
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import AuditEvent, Role
from labeling.models.rubric import Criterion
from labeling.rating.services.leases import assignment_next
from lace_site.backup.services import backup_create
from tests.factories.certificates import stored_certificate
from tests.factories.compared_runs import make_compared
from tests.factories.labelling_job import answer_all, user_of
from tests.factories.rows import make_chat, make_rater, make_rubric, make_set, make_user
from tests.files import refused, run

pytestmark = pytest.mark.django_db(transaction=True)
on_sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="looks into a SQLite file")
on_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="uses PostgreSQL's programs")


@pytest.fixture(autouse=True)
def key(settings: Settings, tmp_path: Path) -> Path:
    """The file of this installation's certificate key."""
    settings.LACE_CERTIFICATE_KEY = tmp_path / "here" / "certificate_key.pem"
    settings.LACE_CERTIFICATE_KEY.parent.mkdir()
    return Path(settings.LACE_CERTIFICATE_KEY)


@contextmanager
def another_place(folder: Path, settings: Settings) -> Iterator[Path]:
    """Another installation: an empty database and no keys; yields the folder of its files."""
    place = folder / "there"
    place.mkdir(parents=True, exist_ok=True)
    old, new = connection.settings_dict["NAME"], f"there_{uuid.uuid4().hex[:8]}"
    settings.LACE_CERTIFICATE_KEY = place / "certificate_key.pem"
    if connection.vendor == "sqlite":
        new = str(place / "lace.sqlite3")
    else:
        administer(f'CREATE DATABASE "{new}" TEMPLATE template0')
    connect_to(new)
    try:
        yield place
    finally:
        connect_to(old)
        if connection.vendor != "sqlite":
            administer(f'DROP DATABASE "{new}"')


def administer(statement: str) -> None:
    with connection.creation._nodb_cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(statement)


def connect_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


def failed(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as caught:
        call_command(*arguments, stdout=io.StringIO(), stderr=io.StringIO())
    assert "\n" not in str(caught.value)
    return caught.value


# ---------- there and back ----------


def make_workspace() -> tuple[Run, Certificate]:
    """A judged set with a certificate, a draft of a rater who is signed in, and a unit in work."""
    compared = make_compared()
    certificate = stored_certificate(compared.run, by=make_user("ines", Role.LEAD))
    rater = make_rater("new", user=make_user("new", Role.RATER))
    criteria = list(Criterion.objects.all())
    job = job_open(
        chat_set=compared.chat_set, name="October", criteria=criteria, raters=[rater], overlap=1, by=None
    )
    assignment = assignment_next(rater=rater, job=job)
    assert assignment is not None
    answer_all(assignment)
    Client().force_login(user_of(rater))
    now = timezone.now()
    lease = WorkerLease.objects.create(
        token=uuid.uuid4(), run=compared.run, beat_at=now, expires_at=now + timedelta(hours=1)
    )
    leased = {"state": Unit.State.LEASED, "lease": lease, "tries": 1, "group": 9}
    Unit.objects.create(run=compared.run, chat=assignment.chat, **leased)
    return compared.run, certificate


def test_a_restored_workspace_goes_on_where_the_backup_was_made(
    tmp_path: Path, key: Path, settings: Settings
) -> None:
    the_run, certificate = make_workspace()
    file = tmp_path / "monday.lace"
    written = run("backup", file).document
    assert written["rows"]["labeling_label"] == Label.objects.count()
    assert Session.objects.exists()
    text = key.read_bytes()
    with another_place(tmp_path, settings) as place:
        restored = run("restore", file).document
        assert (restored["rows"], restored["migrate"]) == (written["rows"], False)
        own = place / "certificate_key.pem"
        assert (own.read_bytes(), stat.S_IMODE(own.stat().st_mode)) == (text, 0o600)
        assert sorted(path.name for path in place.iterdir() if "sqlite" not in path.name) == [own.name]
        verified = certificate_verified(
            body=certificate.body, signature=certificate.signature, user=AnonymousUser()
        )
        assert verified.word == "genuine"
        assert not Session.objects.exists()
        assert Label.objects.filter(state="draft").count() == Criterion.objects.count() > 0
        unit = Unit.objects.get(run=the_run, group=9)
        assert (unit.state, unit.lease, unit.tries) == ("open", None, 0)
        assert restored["leases_freed"] == 1
        assert not WorkerLease.objects.exists()
        assert restored["rows"]["labeling_auditevent"] == AuditEvent.objects.count() > 0
        with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
            cursor.execute("DELETE FROM labeling_auditevent")


def test_a_backup_is_for_its_owner_alone_and_holds_no_secret(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OPENAI_API_KEY = "sk-canary-endpoint"
    user = make_user("mara", Role.RATER)
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    file = tmp_path / "monday.lace"
    backup_create(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    with zipfile.ZipFile(file) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    for secret in (settings.SECRET_KEY, settings.OPENAI_API_KEY, session):
        assert secret.encode() not in content


# ---------- refusals ----------


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    make_set(make_rubric("polite"), make_chat("chat-1"))
    file = tmp_path / "monday.lace"
    run("backup", file)
    return file


def test_a_backup_replaces_no_file_and_a_restore_no_database(
    backup: Path, tmp_path: Path, settings: Settings
) -> None:
    before = backup.read_bytes()
    assert "exists already" in refused("backup", backup)
    assert backup.read_bytes() == before
    assert "already" in refused("restore", backup)
    assert Chat.objects.count() == 1
    with another_place(tmp_path, settings) as place:
        (place / "certificate_key.pem").write_text("another key")
        (tmp_path / "here" / "certificate_key.pem").write_text("its key")
    with_key = tmp_path / "tuesday.lace"
    settings.LACE_CERTIFICATE_KEY = tmp_path / "here" / "certificate_key.pem"
    run("backup", with_key)
    with another_place(tmp_path, settings) as place:
        assert "is another key" in refused("restore", with_key)
        assert [path.name for path in place.iterdir()] == ["certificate_key.pem"]


def changed(backup: Path, name: str, change: Any) -> Path:
    """A backup with one of its files changed."""
    file = backup.with_name("changed.lace")
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, change(content) if member.startswith(name) else content)
    return file


def manifest_with(**given: Any) -> Any:
    return lambda text: json.dumps(json.loads(text) | given)


REFUSALS = {
    "cut": (None, "damaged"),
    "one byte": (("database", lambda content: content[:-1] + b"?"), "differs from its hash"),
    "longer": (("database", lambda content: content + b"?" * 2_000_000), "differs from its hash"),
    "no manifest": (("manifest", lambda _: "[]"), "manifest"),
    "another format": (("manifest", manifest_with(format=99)), "manifest"),
    "another place": (("manifest", manifest_with(files={"../x": {"sha256": "", "bytes": 1}})), "manifest"),
    "newer": (("manifest", manifest_with(migrations={"labeling": "9999_later"})), "newer version"),
    "another kind": (("manifest", manifest_with(database="oracle")), "a backup of oracle"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_damaged_or_foreign_backup_leaves_nothing_behind(
    case: str, backup: Path, tmp_path: Path, settings: Settings
) -> None:
    change, words = REFUSALS[case]
    if change is None:
        file = backup
        file.write_bytes(backup.read_bytes()[:-500])
    else:
        file = changed(backup, *change)
    with another_place(tmp_path, settings) as place:
        assert words in refused("restore", file)
        assert list(place.iterdir()) == []
        if connection.vendor != "sqlite":
            assert connection.introspection.table_names() == []


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("hello")
    assert "no backup" in refused("restore", note)
    assert "No such file" in refused("restore", tmp_path / "absent")
    assert failed("backup", str(tmp_path / "absent" / "monday.lace")).returncode == 4


@on_sqlite
def test_counts_that_differ_from_the_manifest_are_refused(
    backup: Path, tmp_path: Path, settings: Settings
) -> None:
    file = changed(backup, "manifest", manifest_with(rows={"labeling_chat": 7}))
    with another_place(tmp_path, settings) as place:
        assert "not those in its manifest" in refused("restore", file)
        assert list(place.iterdir()) == []


@on_sqlite
def test_a_refused_restore_leaves_no_key_behind(tmp_path: Path, key: Path, settings: Settings) -> None:
    key.write_text("its key")
    whole = tmp_path / "monday.lace"
    run("backup", whole)
    file = changed(whole, "manifest", manifest_with(rows={"labeling_chat": 7}))
    with another_place(tmp_path, settings) as place:
        assert "not those in its manifest" in refused("restore", file)
        assert list(place.iterdir()) == []


@on_sqlite
def test_a_log_that_a_deleted_database_left_is_in_the_way(
    backup: Path, tmp_path: Path, settings: Settings
) -> None:
    with another_place(tmp_path, settings) as place:
        (place / "lace.sqlite3-wal").write_bytes(b"old")
        assert "lace.sqlite3-wal already there" in refused("restore", backup)


@on_postgres
def test_a_missing_client_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = failed("backup", str(tmp_path / "monday.lace"))
    assert error.returncode == 4
    assert "pg_dump is not installed" in str(error)
    assert list(tmp_path.glob("*.lace")) == []


@on_postgres
def test_an_older_client_program_gets_no_option_that_only_a_newer_driver_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "pg_dump"
    old.write_text('#!/bin/sh\necho "$1" >&2\nexit 1\n')
    old.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asked = str(failed("backup", str(tmp_path / "monday.lace"))).partition("--dbname=")[2]
    words = {word.partition("=")[0] for word in shlex.split(asked)}
    said = {"dbname", "host", "user"}
    assert said <= words <= said | {"port", "connect_timeout", "options", "client_encoding"}


# ---------- under load ----------

ROUNDS, WRITERS = 25, 3


class Load:
    """Writers that add a chat and its membership in one transaction, until the block ends."""

    def __init__(self) -> None:
        self._set = make_set(make_rubric("polite"))
        self._topic = make_chat("first").topic_id
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=[n]) for n in range(WRITERS)]
        self.errors: list[Exception] = []

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        number = 0
        try:
            while not self._done.is_set():
                number += 1
                with transaction.atomic():
                    self._add(f"chat-{writer}-{number}", writer * 1_000_000 + number)
        except Exception as error:  # noqa: BLE001  shown by the test
            self.errors.append(error)
        finally:
            connections.close_all()

    def _add(self, name: str, position: int) -> None:
        messages = [{"n": 1, "role": "user", "content": name * 300}]
        chat = Chat.objects.create(
            external_id=name,
            topic_id=self._topic,
            messages=messages,
            content_hash=name,
            message_count=1,
            char_count=1,
        )
        ChatSetMember.objects.create(chat_set=self._set, chat=chat, position=position)


@pytest.mark.heavy
def test_every_backup_under_write_load_is_sound_and_of_one_moment(tmp_path: Path, settings: Settings) -> None:
    sizes = []
    with Load() as load:
        for number in range(ROUNDS):
            rows = backup_create(tmp_path / f"{number}.lace").rows
            # The first chat is no member.
            assert rows["labeling_chat"] == rows["labeling_chatsetmember"] + 1
            sizes.append(rows["labeling_chat"])
    assert load.errors == []
    assert sizes == sorted(set(sizes)), "nothing was written between two backups"
    for number in range(0, ROUNDS, 8):
        with another_place(tmp_path / str(number), settings) as place:
            run("restore", tmp_path / f"{number}.lace")
            assert Chat.objects.count() == sizes[number]
            assert ChatSetMember.objects.count() == sizes[number] - 1
            if connection.vendor == "sqlite":
                connection.close()
                with closing(sqlite3.connect(place / "lace.sqlite3")) as copy:
                    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# ---------- a folder of backups ----------


def test_a_folder_keeps_the_newest_backups_that_are_named_by_their_time(tmp_path: Path) -> None:
    names = [f"lace-2026112{day}T031500Z.zip" for day in range(1, 5)]
    (folder := tmp_path / "backups").mkdir()
    for name in (*names, "lace-before-the-move.zip"):
        (folder / name).touch()
    made = Path(run("backup", folder, "--keep", "3").document["file"])
    assert made.parent == folder and made.stat().st_size > 0
    assert sorted(path.name for path in folder.iterdir()) == [
        *names[2:],
        made.name,
        "lace-before-the-move.zip",
    ]


@pytest.mark.parametrize(("place", "keep"), [("new.zip", "3"), ("", "0")], ids=["a file", "none"])
def test_backups_are_only_deleted_from_a_folder_and_never_all(tmp_path: Path, place: str, keep: str) -> None:
    folder = tmp_path / "nightly"
    folder.mkdir()
    assert "--keep" in refused("backup", folder / place, "--keep", keep)
    assert list(folder.iterdir()) == []
