"""Bad input of every kind, to every import: exit 2, file, line and field named, nothing written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from tests.factories.rows import make_chat, make_rubric, make_set
from tests.files import chat, criterion, decision, label, refused, rubric, verdict, write_json, write_jsonl

pytestmark = pytest.mark.django_db

LINES: dict[str, Callable[[], dict[str, Any]]] = {
    "import_chats": lambda: chat("new"),
    "import_labels": label,
    "import_adjudications": decision,
    "import_verdicts": verdict,
}
OPTIONS = {"import_chats": ["--set", "other"], "import_verdicts": ["--set", "calibration"]}

BROKEN = {
    "broken JSON": (b'{"chat_id": ', "not JSON"),
    "another format": (b"chat_id,criterion,value", "not JSON"),
    "a list": (b'[{"id": "x"}]', "must be a JSON object"),
    "NaN": (b'{"id": NaN}', "NaN is not JSON"),
    "Infinity": (b'{"id": Infinity}', "Infinity is not JSON"),
    "a huge float": (b'{"id": 1e400}', "out of range"),
    "a huge integer": (b'{"id": ' + b"7" * 5000 + b"}", "4,300 digits"),
    "deep JSON": (b'{"id": ' + b"[" * 90_000 + b"}", "deeper than 32"),
    "slightly too deep JSON": (b'{"id": ' + b"[" * 32 + b"]" * 32 + b"}", "deeper than 32"),
    "a bomb of small values": (b'{"id": [' + b"{}," * 100_000 + b"{}]}", "more than 100,000 values"),
    "a key twice": (b'{"id": "a", "id": "b"}', "id: appears twice in one object"),
    "latin-1": ('{"id": "café"}'.encode("latin-1"), "not UTF-8"),
    "binary": (b"\x1f\x8b\x08\x00\x00\xff", "not UTF-8"),
    "NUL": (rb'{"id": "a\u0000"}', "id: holds a NUL"),
    "half a surrogate pair": (rb'{"id": "\udc00"}', "id: holds half a surrogate"),
    "an empty object": (b"{}", ": is missing"),
    "huge": (b'{"id": "' + b"x" * (17 * 1024 * 1024) + b'"}', "longer than 16 MB"),
}


@pytest.fixture(autouse=True)
def workspace(db: None) -> None:
    make_set(make_rubric("polite"), make_chat("c1"), make_chat("c2"))


def contents() -> dict[str, int]:
    """Rows of every table of ours."""
    models = [model for app in ("labeling", "evaluation") for model in apps.get_app_config(app).get_models()]
    return {model.__name__: model._default_manager.count() for model in models}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", LINES)
def test_a_broken_line_after_good_ones_leaves_nothing(command: str, kind: str, tmp_path: Path) -> None:
    line, words = BROKEN[kind]
    path = write_jsonl(tmp_path / "file.jsonl", LINES[command]())
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
    before = contents()
    message = refused(command, path, *OPTIONS.get(command, []))
    assert f"{path} line 3" in message
    assert words in message
    assert contents() == before


@pytest.mark.parametrize("command", LINES)
def test_no_file_a_folder_and_utf16_are_named(command: str, tmp_path: Path) -> None:
    wide = tmp_path / "wide.jsonl"
    wide.write_bytes('{"id": "a"}'.encode("utf-16"))
    for path, words in ((tmp_path / "absent", "no such file"), (tmp_path, "is a folder"), (wide, "UTF-16")):
        message = refused(command, path, *OPTIONS.get(command, []))
        assert str(path) in message
        assert words in message


@pytest.mark.parametrize(
    ("command", "line", "field"),
    [
        ("import_chats", chat("new", split="test"), "split"),
        ("import_chats", {"id": "new", "messages": [{"role": "system"}]}, "messages[0].content"),
        ("import_chats", chat("c1", "Other words"), "id"),
        ("import_labels", label(criterion="unknown"), "criterion"),
        ("import_labels", label("unknown"), "chat_id"),
        ("import_labels", label(turns=[9]), "turns[0]"),
        ("import_adjudications", decision(criterion="unknown"), "criterion"),
        ("import_verdicts", verdict("unknown"), "chat_id"),
        ("import_verdicts", verdict(p_true=1.5), "p_true"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(
    command: str, line: dict[str, Any], field: str, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "file.jsonl", LINES[command]() | {"chat_id": "c2"}, line)
    before = contents()
    assert f"{path} line 2, {field}: " in refused(command, path, *OPTIONS.get(command, []))
    assert contents() == before


@pytest.mark.parametrize(
    ("document", "line", "field"),
    [
        (rubric(criterion("kind", tier="hard")), 13, "criteria[0].tier"),
        (rubric(criterion("kind"), criterion("kind")), 18, "criteria[1].key"),
        (rubric(criterion("Kind")), 11, "criteria[0].key"),
        (rubric(criterion("kind", dimension="none")), 12, "criteria[0].dimension"),
        (rubric(criterion("kind", passes_when="no")), 16, "criteria[0].passes_when"),
        (rubric(criterion("kind", question="")), 14, "criteria[0].question"),
        (rubric(criterion("kind", knowledge=["nothing"])), 17, "criteria[0].knowledge[0]"),
        (rubric({"key": "kind"}), 10, "criteria[0].dimension"),
        (rubric(criterion("kind"), criterion("polite"), name="Other"), 18, "criteria[1].key"),
        (rubric() | {"name": "x" * 121}, 2, "name"),
    ],
)
def test_a_wrong_rubric_names_line_and_field(
    document: dict[str, Any], line: int, field: str, tmp_path: Path
) -> None:
    path = write_json(tmp_path / "rubric.json", document)
    before = contents()
    assert f"{path} line {line}, {field}: " in refused("import_rubric", path)
    assert contents() == before


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_rubric_leaves_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rubric.json"
    path.write_bytes(BROKEN[kind][0])
    before = contents()
    assert str(path) in refused("import_rubric", path)
    assert contents() == before


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "file"),
        (["a", "b"], "unrecognized arguments: b"),
        (["a", "--sets", "x"], "--sets"),
        (["a", "--set"], "--set"),
    ],
)
def test_wrong_usage_is_one_line(args: list[str], words: str) -> None:
    assert words in refused("import_chats", *args)


def test_an_unknown_set_is_named(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "verdicts.jsonl", verdict())
    assert "--set: no set 'nothing'" in refused("import_verdicts", path, "--set", "nothing")
    assert "--set" in refused("import_verdicts", path)
