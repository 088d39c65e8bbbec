"""An archive comes from anywhere: whatever is wrong with it gets one line, and nothing is written."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from alignment.archive.core import MANIFEST, member_of
from alignment.archive.queries import TABLES
from alignment.archive.services import archive_take
from common.problems import InputProblem
from labeling.models.people import Role, Workspace
from tests.factories.archives import changed, emptied
from tests.factories.rows import make_chat, make_rubric, make_set, make_user
from tests.files import run

Change = Callable[[list[dict[str, Any]]], Any]


@pytest.fixture
def archive(db: None, tmp_path: Path) -> Path:
    """An archive of a small workspace; the workspace of the test is empty."""
    make_set(make_rubric("polite"), make_chat("c1"), make_chat("c2"))
    make_user("ines", Role.LEAD)
    Workspace.current()
    path = tmp_path / "workspace.zip"
    run("export_archive", "-o", path)
    emptied()
    return path


def counts() -> dict[str, int]:
    return {table.name: apps.get_model(table.name)._base_manager.count() for table in TABLES}


def refusal(path: Path) -> str:
    """The one line on an archive that is refused; nothing was written."""
    before = counts()
    with pytest.raises(InputProblem) as refused:
        archive_take(source=path, name="there.zip", by=None)
    assert counts() == before
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_what_is_no_archive(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("Hello")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as other:
        other.writestr("photo.txt", "x")
    assert refusal(tmp_path / "text.zip") == "there.zip is no ZIP file, or a damaged one"
    assert "no manifest.json: this is no archive" in refusal(tmp_path / "photos.zip")
    assert "no such file" in refusal(tmp_path / "missing.zip")


def test_every_cut_of_the_file_is_refused(archive: Path, tmp_path: Path) -> None:
    content, cut = archive.read_bytes(), tmp_path / "cut.zip"
    for length in range(0, len(content), len(content) // 12):
        cut.write_bytes(content[:length])
        refusal(cut)


def test_a_changed_byte_is_refused(archive: Path, tmp_path: Path) -> None:
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        member = opened.getinfo(member_of("labeling.Chat"))
    content[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 0xFF
    (tmp_path / "other.zip").write_bytes(content)
    assert "labeling.Chat" in refusal(tmp_path / "other.zip")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(format=2), "format: is 2, and this version reads 1: update the workbench"),
        (lambda m: m.update(kind="photos"), "this is no archive of a workspace"),
        (
            lambda m: m["migrations"].update(labeling="9999_later"),
            "is of a newer version (labeling 9999_later)",
        ),
        (lambda m: m["migrations"].update(another_app="0001"), "is of a newer version (another_app 0001)"),
        (lambda m: m["migrations"].update(labeling="0001_old"), "is of an older version (labeling 0001_old)"),
        (lambda m: m["tables"].pop("labeling.Chat"), "lacks the table labeling.Chat"),
        (lambda m: m["tables"].update(x=m["tables"]["labeling.Chat"]), "holds the unknown table 'x'"),
        (
            lambda m: m["tables"]["labeling.Chat"]["columns"].append("rights"),
            "has the unknown column 'rights'",
        ),
        (lambda m: m["tables"]["labeling.Chat"]["columns"].remove("topic_id"), "lacks the column 'topic_id'"),
        (lambda m: m["tables"]["labeling.Chat"].update(sha256="0" * 64), "differs from its sum"),
        (lambda m: m["tables"]["labeling.Chat"].update(bytes=5), "differs from its sum"),
        (lambda m: m["tables"]["labeling.Chat"].update(rows=1), "more rows than the manifest says"),
        (lambda m: m["tables"]["labeling.Chat"].update(rows=3), "fewer rows than the manifest says"),
        (lambda m: m["tables"]["labeling.Chat"].update(rows=-1), "must be a whole number"),
        (lambda m: m.update(tables=[]), "tables: must be an object"),
    ],
)
def test_a_manifest_that_lies(archive: Path, change: Callable[[dict[str, Any]], Any], says: str) -> None:
    assert says in refusal(changed(archive, manifest=change))


def first(**values: Any) -> Change:
    return lambda rows: rows[0].update(values)


@pytest.mark.parametrize(
    ("table", "change", "says"),
    [
        ("labeling.Chat", first(topic_id=999), "do not fit together"),
        ("labeling.Chat", first(topic_id="1 OR 1=1"), "line 1, topic_id: not a value"),
        ("labeling.Chat", first(message_count=2**70), "line 1, message_count: not a value"),
        ("labeling.Chat", first(external_id="x" * 201), "line 1, external_id: not a value"),
        ("labeling.Chat", first(external_id="a\0b"), "line 1, external_id: not a value"),
        ("labeling.Chat", first(external_id="\ud800"), "line 1, external_id: not a value"),
        ("labeling.Chat", first(external_id=None), "line 1, external_id: not a value"),
        ("labeling.Chat", first(origin="elsewhere"), "line 1, origin: not a value"),
        ("labeling.Chat", first(created_at="yesterday"), "line 1, created_at: not a value"),
        ("labeling.Chat", first(password="x"), "its columns are not those of the manifest"),
        ("labeling.Chat", lambda rows: rows.append(rows[0]), "do not fit together"),
        ("labeling.User", lambda rows: rows.append(rows[0]), "holds an account twice"),
        ("labeling.User_groups", first(user_id=77), "line 1, user_id: not a value"),
        ("labeling.Workspace", first(id=2), "do not fit together"),
        ("labeling.Workspace", first(fence_secret="?"), "line 1, fence_secret: not a value"),
    ],
)
def test_rows_that_are_none_of_ours(archive: Path, table: str, change: Change, says: str) -> None:
    assert says in refusal(changed(archive, tables={table: change}))


def test_further_files_and_paths_out_of_the_folder(archive: Path) -> None:
    for name in ("../../etc/cron.d/x", "/etc/passwd", "tables/../../x.jsonl", "note.txt"):
        assert f"holds the unknown file '{name}'" in refusal(changed(archive, extra={name: b"x"}))


def test_a_bomb_is_not_unpacked(archive: Path) -> None:
    target = archive.with_name("bomb.zip")
    table = member_of("labeling.Chat")
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in {*source.namelist()} - {table}:
            bomb.writestr(name, source.read(name))
        bomb.writestr(table, b"[" * (64 << 20))
    assert "unpacks to more than 200 times its size" in refusal(target)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr(MANIFEST, b" " * (64 << 20))
    assert "unpacks to more than 200 times its size" in refusal(target)


def test_a_table_that_is_there_twice(archive: Path) -> None:
    with (
        zipfile.ZipFile(archive, "a") as opened,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        opened.writestr(member_of("labeling.Chat"), b"")
    assert "holds a file twice" in refusal(archive)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(b'{"id": ' + b"[" * 200_000, "line 1 is not a JSON object", id="deep"),
        pytest.param(b'{"id": NaN}', "line 1 is not a JSON object", id="NaN"),
        pytest.param(b"[1, 2]", "line 1 is not a JSON object", id="list"),
        pytest.param(b'{"id": "\xff"}', "line 1 is not a JSON object", id="not UTF-8"),
        pytest.param(b'{"id": ' + b"1" * 5_000 + b"}", "line 1 is not a JSON object", id="digits"),
        pytest.param(b"[" + b"[]," * 2_500_000, "holds more than 4,000,000 values", id="values"),
        pytest.param(b" " * (33 << 20), "is longer than 32 MB", id="long"),
    ],
)
def test_lines_that_are_no_rows(archive: Path, line: bytes, says: str) -> None:

    message = refusal(changed(archive, raw={"labeling.Topic": line + b"\n"}))
    assert says in message or "unpacks to more than" in message
