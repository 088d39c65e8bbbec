"""Prompts as files of a folder: the same prompts give the same bytes, a changed file is a new version."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.prompts.core.files import PromptFile, prompt_file_read, prompt_file_text, same_text
from evaluation.prompts.queries.versions import champions
from labeling.models.chats import Chat
from labeling.models.people import AuditEvent
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_set
from tests.factories.runs import workspace
from tests.files import refused, run, write_jsonl

TEXT = "# Objective\nIs polite so?\n\nRude words count.\n"
texts = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


@given(texts)
def test_a_prompt_comes_back_from_its_file(text: str) -> None:
    found = prompt_file_read(prompt_file_text(PromptFile(text, "polite", 3, "ab12")))
    assert same_text(found.text, text)
    assert (found.criterion, found.version, found.sha256) == ("polite", 3, "ab12")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("---\ncriterion: polite\n# Objective\n", "head: begins with --- and never ends"),
        ("---\npolite\n---\n", "head: must hold lines `name: value`, not 'polite'"),
        ("---\nauthor: me\n---\n", "author: is not an entry of a prompt's head"),
        ("---\nversion: 1\nversion: 2\n---\n", "version: occurs twice"),
        ("---\nversion: new\n---\n", "version: must be a version number, not 'new'"),
    ],
)
def test_a_wrong_head_is_named(content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prompt_file_read(content)


# ---------- the commands ----------


@pytest.fixture
def folder(db: None, tmp_path: Path) -> Path:
    """A workspace of two criteria and its prompts as files."""
    workspace("polite", "exact", name="training")
    for chat in Chat.objects.filter(external_id__in=["c0", "c1"]):
        chat.memberships.update(split="train")
    assert exported(tmp_path / "prompts") == {"prompts": 2, "changed": 2}
    return tmp_path / "prompts"


def exported(folder: Path) -> Any:
    return run("export_prompts", folder).document


def imported(folder: Path) -> Any:
    return run("import_prompts", folder, "--reason", "Review 17").document


def line(chat_id: str = "c0", **changes: Any) -> dict[str, Any]:
    return {"chat_id": chat_id, "turns": [1, 2], "value": True, "rationale": "m02 helps."} | changes


def change(file: Path, text: str = TEXT) -> None:
    """Another text below the head."""
    head = file.read_text("utf-8").split("---\n")[1]
    file.write_text(f"---\n{head}---\n{text}", "utf-8")


def newest(key: str = "polite") -> PromptVersion:
    return PromptVersion.objects.filter(criterion__key=key).latest("number")


def test_the_same_prompts_are_the_same_bytes(folder: Path) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert sorted(before) == ["exact.md", "polite.md"]
    assert exported(folder)["changed"] == 0
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert before["polite.md"].startswith(b"---\ncriterion: polite\nversion: 1\nsha256: ")


def test_what_was_exported_is_known(folder: Path) -> None:
    assert imported(folder) == {"created": 0, "unchanged": 2, "updated": 0}
    (folder / "polite.md").write_bytes((folder / "polite.md").read_bytes() + b"\n")
    assert imported(folder)["created"] == 0


def test_a_changed_file_is_a_draft_made_from_the_version_it_names(folder: Path) -> None:
    change(folder / "polite.md")
    assert imported(folder) == {"created": 1, "unchanged": 1, "updated": 0}
    added = newest()
    assert (added.number, added.text, added.reason, added.base and added.base.number) == (
        2, TEXT, "Review 17", 1,
    )  # fmt: skip
    polite = Criterion.objects.get(key="polite")
    assert champions(criteria=[polite])[polite.pk].number == 1
    assert imported(folder)["created"] == 0


def test_chats_are_read_for_leaked_words_once_the_versions_are_written(folder: Path) -> None:
    exported(folder)
    change(folder / "polite.md")
    make_set(Criterion.objects.get(key="polite").rubric, make_chat("dev"), name="dev", split="dev")
    with CaptureQueriesContext(connection) as queries:
        imported(folder)
    asked = [query["sql"] for query in queries]
    written = [n for n, sql in enumerate(asked) if sql.startswith("RELEASE SAVEPOINT")]
    assert written[-1] < next(n for n, sql in enumerate(asked) if "messages" in sql)


def test_a_file_made_from_an_older_champion_says_so(folder: Path) -> None:
    other = folder.parent / "other.md"
    other.write_text(TEXT, "utf-8")
    run("add_prompt", "--criterion", "polite", "--prompt", other, "--promote", "--reason", "x")
    change(folder / "polite.md", text=TEXT + "More.\n")
    notes = run("import_prompts", folder).notes
    assert "version 3 of polite; based on version 1, but the champion is version 2" in notes


def test_examples_are_stored_beside_their_prompt(folder: Path) -> None:
    lines = [line(), line("c1", value=False)]
    write_jsonl(folder / "polite.examples.jsonl", *lines)
    assert imported(folder)["created"] == 1
    rows = FewShotExample.objects.filter(prompt_version=newest())
    assert list(rows.values_list("chat__external_id", "value")) == [("c0", True), ("c1", False)]
    assert imported(folder)["created"] == 0


def test_a_champions_examples_are_exported_and_go_with_them(folder: Path) -> None:
    examples = write_jsonl(folder / "polite.examples.jsonl", line(), line("c1", value=False))
    given = examples.read_bytes()
    options = ["--criterion", "polite", "--prompt", folder / "polite.md", "--promote", "--reason", "x"]
    run("add_prompt", *options, "--examples", examples)
    examples.unlink()
    assert exported(folder)["changed"] == 2
    assert examples.read_bytes() == given
    run("add_prompt", *options)
    exported(folder)
    assert not examples.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rude.md", TEXT, "rude.md: there is no criterion 'rude'"),
        ("exact.md", "---\ncriterion: polite\n---\n" + TEXT, "exact.md, criterion: is 'polite', not exact"),
        ("exact.md", "---\ncriterion: exact\n---\n\n", "exact.md: is empty"),
        ("exact.examples.jsonl", '{"chat_id": "c9"}', "exact.examples.jsonl line 1"),
    ],
)
def test_a_wrong_file_is_refused_and_nothing_is_added(
    name: str, content: str, message: str, folder: Path
) -> None:
    change(folder / "polite.md")
    (folder / name).write_text(content, "utf-8")
    assert message in refused("import_prompts", folder)
    assert newest().number == 1


def test_a_folder_that_is_none_is_refused(db: None, tmp_path: Path) -> None:
    assert "no such folder" in refused("import_prompts", tmp_path / "none")
    (tmp_path / "file").write_text("x")
    assert "is a file, not a folder" in refused("import_prompts", tmp_path / "file")
    assert "holds no .md file" in refused("import_prompts", tmp_path)


def test_an_import_stands_in_the_log_and_a_dry_run_leaves_nothing(folder: Path) -> None:
    (folder / "polite.md").write_text(TEXT, encoding="utf-8")
    for options, events in ((["--dry-run"], 0), ([], 1)):
        assert run("import_prompts", folder, *options).document["created"] == 1
        assert AuditEvent.objects.filter(verb="prompts imported").count() == events
        assert PromptVersion.objects.filter(criterion__key="polite").count() == 1 + events
    assert AuditEvent.objects.get(verb="prompts imported").detail["file"] == "prompts"
