"""Reading import files: what is taken, and how the rest is named."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.guarded_json import guarded_loads, line_of
from common.jsonl import (
    MAX_LINE,
    Fields,
    Ignored,
    in_batches,
    iso,
    read_document,
    read_jsonl,
    read_records,
    read_text,
)
from common.problems import FieldProblem, ImportProblem


def file_of(tmp_path: Path, content: bytes, name: str = "chats.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def problem(path: Path) -> ImportProblem:
    with pytest.raises(ImportProblem) as caught:
        list(read_jsonl(path))
    return caught.value


def test_lines_are_numbered_from_one_and_blank_ones_passed_over(tmp_path: Path) -> None:
    path = file_of(tmp_path, b'{"a": 1}\r\n\n   \n{"a": 2}')
    assert list(read_jsonl(path)) == [(1, {"a": 1}), (4, {"a": 2})]


def test_a_byte_order_mark_of_utf8_is_no_content(tmp_path: Path) -> None:
    assert list(read_jsonl(file_of(tmp_path, b'\xef\xbb\xbf{"a": 1}\n'))) == [(1, {"a": 1})]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(read_jsonl(file_of(tmp_path, b""))) == []


@pytest.mark.parametrize(
    ("line", "field", "words"),
    [
        (b'{"a": "\xe9t\xe9"}', "", "not UTF-8 at byte 8"),
        (b"\x89PNG\r\x00\x1a", "", "binary"),
        (b'{"a": "x\x00y"}', "", "NUL"),
        (rb'{"a": {"b": ["x\u0000"]}}', "a.b[0]", "NUL"),
        (rb'{"a": "\ud800"}', "a", "surrogate"),
        (b'{"a": NaN}', "", "NaN"),
        (b'{"a": -Infinity}', "", "-Infinity"),
        (b'{"a": 1e999}', "", "out of range"),
        (b'{"a": 1, "b": 2, "a": 3}', "a", "twice"),
        (b'{"x": {"a": 1, "a": 1}}', "a", "twice"),
        (b"[" * 33 + b"]" * 33, "", "deeper than 32"),
        (b"[" * 100_000, "", "deeper than 32"),
        (b'{"a": ' + b"9" * 4301 + b"}", "", "4,300 digits"),
        (b"[1, 2]", "", "must be a JSON object"),
        (b'"text"', "", "must be a JSON object"),
        (b'{"a": 1', "", "not JSON"),
        (b'{"a": 1} {"b": 2}', "", "not JSON"),
        (b"id,topic,messages", "", "not JSON"),
        (b"{'a': 1}", "", "not JSON"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(
    tmp_path: Path, line: bytes, field: str, words: str
) -> None:
    found = problem(file_of(tmp_path, b'{"ok": 1}\n\n' + line + b"\n"))
    assert (found.line, found.field) == (3, field)
    assert words in found.message
    assert str(found).startswith(f"{tmp_path / 'chats.jsonl'} line 3")


def test_utf16_is_called_by_its_name(tmp_path: Path) -> None:
    assert "UTF-16" in str(problem(file_of(tmp_path, '{"a": 1}'.encode("utf-16"))))


def test_a_line_over_the_cap_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.truncate(20 * MAX_LINE)
    assert "longer than 16 MB" in str(problem(path))


def test_what_is_no_file_is_called_so(tmp_path: Path) -> None:
    assert "no such file" in str(problem(tmp_path / "absent.jsonl"))
    assert "is a folder" in str(problem(tmp_path))


def test_thirty_two_levels_and_4300_digits_are_taken() -> None:
    assert guarded_loads("[" * 32 + "]" * 32)
    assert guarded_loads("-" + "9" * 4300) == -int("9" * 4300)


def test_a_number_below_the_limit_of_python_is_refused_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(FieldProblem, match="4,300 digits"):
            guarded_loads("1" * 4301)
    finally:
        sys.set_int_max_str_digits(before)


def test_commas_and_brackets_in_texts_are_no_values() -> None:
    text = '[],{}"\\\\' * 100_000
    assert guarded_loads(json.dumps({"content": text})) == {"content": text}


def test_escaped_pairs_are_ordinary_text() -> None:
    assert guarded_loads(r'{"a": "\ud83d\ude00"}') == {"a": "😀"}


def test_a_parser_refusal_names_file_line_and_field(tmp_path: Path) -> None:
    path = file_of(tmp_path, b'{"id": "a"}\n{"id": 7}\n')
    with pytest.raises(ImportProblem, match=r"chats\.jsonl line 2, id: must be text, not 7$"):
        list(read_records(path, lambda fields: fields.text("id")))


def test_a_document_refusal_names_the_line_of_the_field(tmp_path: Path) -> None:
    document = {"name": "R", "criteria": [{"key": "a", "tier": "simple"}, {"key": "b", "tier": 3}]}
    path = file_of(tmp_path, json.dumps(document, indent=1).encode(), "rubric.json")

    def parse(fields: Fields) -> str:
        return Fields(fields.items("criteria")[1], "criteria[1]").text("tier")

    with pytest.raises(
        ImportProblem, match=r"rubric\.json line 10, criteria\[1\]\.tier: must be text, not 3$"
    ):
        read_document(path, parse)


def test_a_broken_document_names_the_line_where_it_breaks(tmp_path: Path) -> None:
    path = file_of(tmp_path, b'{\n "name": "R",\n "criteria": [}\n', "rubric.json")
    with pytest.raises(ImportProblem, match=r"rubric\.json line 3: not JSON"):
        read_document(path, lambda fields: fields.text("name"))


@pytest.mark.parametrize(
    ("field", "line"),
    [("a", 2), ("a.b[0]", 4), ("a.b[1]", 5), ("a.b[1].c", 5), ("a.missing", 2), ("nothing", 1), ("", 1)],
)
def test_the_line_of_a_missing_field_is_its_object(field: str, line: int) -> None:
    text = '{\n "a": {\n  "b": [\n   "x, y: [{",\n   {"c": "q\\"}"}\n  ]\n }\n}'
    assert json.loads(text)
    assert line_of(text, field) == line


def test_a_text_file_gets_plain_line_ends(tmp_path: Path) -> None:
    assert read_text(file_of(tmp_path, b"\xef\xbb\xbf# A\r\nb\r", "a.md")) == "# A\nb\n"
    with pytest.raises(ImportProblem, match="NUL"):
        read_text(file_of(tmp_path, b"a\x00b", "b.md"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-01T10:00:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T10:00:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_time_without_zone_is_utc(text: str | None, moment: datetime | None) -> None:
    found = Fields({"at": text}).moment("at")
    assert found == moment
    assert found is None or found.tzinfo == UTC


@pytest.mark.parametrize("value", ["yesterday", "", 5, True, "0001-01-01T00:00:00+14:00", "2026-13-01"])
def test_a_time_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(FieldProblem, match="ISO 8601"):
        Fields({"at": value}).moment("at")


def test_true_is_no_number_and_one_is_no_boolean() -> None:
    fields = Fields({"t": True, "one": 1, "p": 1.5})
    for refusal in (
        lambda: fields.whole("t"),
        lambda: fields.share("t"),
        lambda: fields.share("p"),
        lambda: fields.boolean("one"),
        lambda: fields.answer("one"),
    ):
        with pytest.raises(FieldProblem):
            refusal()


def test_an_answer_must_be_said_even_when_it_is_null() -> None:
    assert Fields({"value": None}).answer("value") is None
    with pytest.raises(FieldProblem, match="value: is missing"):
        Fields({}).answer("value")


def test_a_hostile_value_stays_one_short_line() -> None:
    with pytest.raises(FieldProblem) as caught:
        Fields({"id": ["x\n\x1b[31m" * 1000]}).text("id")
    assert len(str(caught.value)) < 120
    assert str(caught.value).isprintable()


def test_unknown_fields_are_counted_by_line() -> None:
    ignored = Ignored()
    ignored.note({"raw", "x"})
    ignored.note(["raw"], "messages[].")
    ignored.note({"raw"})
    assert dict(ignored.counts) == {"raw": 2, "x": 1, "messages[].raw": 1}


def test_batches_keep_order_and_size() -> None:
    assert list(in_batches(iter(range(5)), 2)) == [[0, 1], [2, 3], [4]]
    assert list(in_batches([], 2)) == []


def test_times_are_written_in_utc() -> None:
    assert iso(datetime.fromisoformat("2026-11-01T10:00:00.5+01:00")) == "2026-11-01T09:00:00.500000Z"
