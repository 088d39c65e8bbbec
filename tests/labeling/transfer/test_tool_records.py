"""Large JSON files of other tools are read an object at a time, broken ones refused; the guide works."""

import json
import re
import tracemalloc
from pathlib import Path

import pytest
from django.conf import settings

from common.problems import ImportProblem
from labeling.transfer.core.records import read_objects
from tests.files import chat, criterion, rubric, run, write_json, write_jsonl


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"b": [', "record 2: the file ends inside this record"),
        ('[{"a": 1}', "record 2: the file ends before the end of the list"),
        ('[{"a": 1} {"a": 2}]', "record 2: must be followed by a comma"),
        ('[{"a": 1}] x', "record 2: unexpected text after the end of the list"),
        ('[{"a": "x}, {"b": 1}]', "ends inside this record"),
        ('[{"a": 1, "a": 2}]', "record 1, a: appears twice in one object"),
        ('[{"a": NaN}]', "record 1: NaN is not JSON"),
        ('[{"a": ' + "[" * 40 + "]" * 40 + "}]", "record 1: nested deeper than 32 levels"),
        ("7", "record 1: must be an object"),
    ],
)
def test_a_broken_file_is_refused_with_the_record(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportProblem) as caught:
        list(read_objects(path))
    assert message in str(caught.value)


def test_brackets_and_quotes_inside_texts_are_texts(tmp_path: Path) -> None:
    hard = {"a": '}]"\\', "b": "\\", "c": "[{" * 70_000, "ü": "😀"}
    path = tmp_path / "x.json"
    path.write_text("\ufeff" + json.dumps([hard, hard], ensure_ascii=False), encoding="utf-8")
    assert [(number, fields.data) for number, fields in read_objects(path)] == [(1, hard), (2, hard)]
    path.write_text("  []\n", encoding="utf-8")
    assert list(read_objects(path)) == []
    path.write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(ImportProblem, match="record 1: is not UTF-8"):
        list(read_objects(path))


@pytest.mark.heavy
def test_a_large_export_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w", encoding="utf-8") as file:
        file.write("[" + json.dumps({"text": "x" * 10_000}))
        for _ in range(3_000):
            file.write("," + json.dumps({"text": "x" * 10_000}))
        file.write("]")
    tracemalloc.start()
    assert sum(1 for _ in read_objects(path)) == 3_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 30_000_000 > 10 * peak


def test_the_examples_of_the_guide_can_be_imported(tmp_path: Path, db: None) -> None:
    guide = (settings.BASE_DIR / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    part = guide.partition("## Labels from other tools")[2].partition("\n## ")[0]
    mapping, label_studio, argilla = re.findall(r"```json\n(.*?)```", part, re.DOTALL)
    keys = criterion(), criterion("stated_wrong_rule", allow_na=True)
    run("import_rubric", write_json(tmp_path / "rubric.json", rubric(*keys)))
    run("import_chats", write_jsonl(tmp_path / "c.jsonl", chat("r-001"), chat("r-002")))
    (tmp_path / "map.json").write_text(mapping, encoding="utf-8")
    argilla_map = json.loads(mapping) | {"chat_id": "id"}
    write_json(tmp_path / "argilla_map.json", argilla_map)
    for tool, text, map_file, created in (
        ("label-studio", label_studio, "map.json", 2),
        ("argilla", argilla, "argilla_map.json", 2),
    ):
        (tmp_path / "export.json").write_text(text, encoding="utf-8")
        options = ["--format", tool, "--map", tmp_path / map_file]
        answer = run("import_labels", tmp_path / "export.json", *options).document
        assert answer["created"] == created, tool
