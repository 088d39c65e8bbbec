"""Exports can be imported again and give the same data."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from common.files import replaced_file
from common.problems import InputProblem
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Adjudication, Consensus, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from tests.factories.redesigns import carried_out, redesign, successor
from tests.files import (
    chat,
    criterion,
    decision,
    label,
    refused,
    rubric,
    run,
    verdict,
    write_json,
    write_jsonl,
)

RUBRIC = rubric(criterion(), criterion("refunded", allow_na=True), criterion("brief"))
HARD = 'Ünïcode \u2028 \x85 "quotes" \\ 😀'
CHATS = [
    chat("c2", "Hi", "", HARD, topic="refund", split="holdout", experiment="e", variant="v")
    | {
        "started_at": "2026-11-01T10:00:00.123456+01:00",
        "unit_id": "customer-7",
        "metadata": {"title": "T", "deep": {"n": [1, 2.5, None]}},
    },
    {"id": "c1", "messages": [{"role": "tool", "content": "{}", "created_at": "2026-11-01T10:00:00+01:00"}]},
]
PART = {"message": 3, "start": 0, "end": 7, "quote": "Ünïcode"}
LABELS = [
    label("c2", turns=[1, 3], evidence=[PART], rationale="r", created_at="2026-11-01T09:00:00Z", kind="demo"),
    label("c2", rater="zoe", value=False, post_reveal=True),
    label("c2", "refunded", value=None, version=1),
    label("c1", rater="auto", kind="automatic"),
]
DECISIONS = [
    decision("c2", "refunded", value=None),
    decision("c1", value=False, created_at="2026-11-01T09:00:00Z"),
]
VERDICTS = [
    verdict("c2", p_true=0.25, rationale="m3."),
    verdict("c1", "refunded", state="unparsed", value=None),
    verdict("c1", "polite", value=None),
    verdict("c2", judge="judge-b", value=False),
]


def fill(folder: Path) -> None:
    run("import_rubric", write_json(folder / "rubric.json", RUBRIC))
    run("import_chats", write_jsonl(folder / "chats.jsonl", *CHATS), "--set", "calibration")
    run("import_labels", write_jsonl(folder / "labels.jsonl", *LABELS))
    run("import_adjudications", write_jsonl(folder / "adjudications.jsonl", *DECISIONS))
    run("import_verdicts", write_jsonl(folder / "verdicts.jsonl", *VERDICTS), "--set", "calibration")


def exported(what: str, *args: str, name: str = "calibration") -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("export", what, "--set", name, *args, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def written(what: str, folder: Path) -> Path:
    path = folder / f"{what}.out.jsonl"
    document = run("export", what, "--set", "calibration", "-o", path).document
    assert document == {"exported": len(path.read_text(encoding="utf-8").split("\n")) - 1, "file": str(path)}
    return path


KINDS = ("chats", "labels", "adjudications", "verdicts")


@pytest.mark.django_db
def test_exports_imported_again_change_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    runs = list(Run.objects.order_by("pk").values_list("pk", flat=True))
    for what in KINDS:
        options = [] if what in ("labels", "adjudications") else ["--set", "calibration"]
        answer = run(f"import_{what}", written(what, tmp_path), *options)
        assert "ignored" not in answer.notes
        if what == "verdicts":
            assert sorted(row["id"] for row in answer.document["runs"]) == runs
        else:
            assert (answer.document["created"], answer.document["updated"]) == (0, 0)


def clear() -> None:
    """Empty the workspace, tables that point to others first."""
    for model in (
        *(Verdict, RunChat, Run, Judge, Consensus, Adjudication, LabelRevision, Label, Rater),
        *(ChatSetMember, ChatSet, Chat, Topic, CriterionVersion, Criterion, Dimension, Rubric),
    ):
        model._default_manager.all().delete()


@pytest.mark.django_db
def test_exports_fill_an_empty_workspace_with_the_same(tmp_path: Path) -> None:
    fill(tmp_path)
    before = {what: exported(what) for what in KINDS}
    files = {what: written(what, tmp_path) for what in KINDS}
    clear()
    assert Chat.objects.count() == Label.objects.count() == Run.objects.count() == 0
    run("import_rubric", tmp_path / "rubric.json")
    run("import_chats", files["chats"], "--set", "calibration")
    for what in ("labels", "adjudications"):
        run(f"import_{what}", files[what])
    run("import_verdicts", files["verdicts"], "--set", "calibration")
    assert {what: exported(what) for what in KINDS} == before


@pytest.mark.django_db
def test_answers_that_carried_over_keep_their_origin_through_an_export(tmp_path: Path) -> None:
    fill(tmp_path)
    carried_out(redesign("replace", "polite", into=(successor("kind", "polite"),)))
    carried_out(redesign("replace", "refunded", into=(successor("paid", "refunded", allow_na=True),)))
    both = ("labels", "adjudications")
    before, files = {what: exported(what) for what in both}, {what: written(what, tmp_path) for what in both}
    origins = {(row["criterion"], row.get("carried_from")) for what in both for row in before[what]}
    assert origins == {("polite", None), ("refunded", None), ("kind", "polite"), ("paid", "refunded")}
    for model in (Consensus, Adjudication, LabelRevision, Label, Rater):
        model._default_manager.all().delete()
    for what in both:
        assert run(f"import_{what}", files[what]).document["created"] == len(before[what])
        answer = run(f"import_{what}", files[what])
        assert "ignored" not in answer.notes
        assert (answer.document["created"], answer.document["updated"]) == (0, 0)
    assert {what: exported(what) for what in both} == before
    carried = Label.objects.exclude(carried_from=None)
    assert set(carried.values_list("source", flat=True)) == {"carried"}
    assert carried.count() == Label.objects.filter(source="carried").count() == 3


@pytest.mark.django_db
def test_a_label_given_again_in_a_file_is_no_longer_carried_over(tmp_path: Path) -> None:
    fill(tmp_path)
    carried_out(redesign("replace", "polite", into=(successor("kind", "polite"),)))
    again = write_jsonl(tmp_path / "again.jsonl", label("c1", "kind", rater="auto"))
    assert run("import_labels", again).document["updated"] == 1
    row = Label.objects.get(criterion__key="kind", rater__name="auto")
    assert (row.source, row.carried_from) == ("import", None)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("origin", "message"), [("posh", "no criterion 'posh'"), ("polite", "is the criterion itself")]
)
def test_an_origin_must_be_another_criterion(tmp_path: Path, origin: str, message: str) -> None:
    fill(tmp_path)
    for what, line in (("labels", label("c1", rater="new")), ("adjudications", decision("c2"))):
        path = write_jsonl(tmp_path / "wrong.jsonl", line | {"carried_from": origin})
        assert f"line 1, carried_from: {message}" in refused(f"import_{what}", path)


@pytest.fixture
def filled(tmp_path: Path, db: None) -> Path:
    fill(tmp_path)
    return tmp_path


def test_chats_come_in_the_sets_order_with_their_splits(filled: Path) -> None:
    first, second = exported("chats")
    assert (first["id"], first["split"], first["started_at"]) == (
        "c2",
        "holdout",
        "2026-11-01T09:00:00.123456Z",
    )
    assert first["messages"] == CHATS[0]["messages"]
    assert (first["metadata"], first["variant"]) == (CHATS[0]["metadata"], "v")
    assert second == {
        "id": "c1",
        "topic": "unknown",
        "split": "dev",
        "messages": [{"role": "tool", "content": "{}", "created_at": "2026-11-01T09:00:00Z"}],
    }


def test_labels_keep_version_evidence_kind_and_time(filled: Path) -> None:
    found = exported("labels")
    assert [(row["chat_id"], row["criterion"], row["rater"]) for row in found] == [
        ("c2", "polite", "mara"),
        ("c2", "polite", "zoe"),
        ("c2", "refunded", "mara"),
        ("c1", "polite", "auto"),
    ]
    first = found[0]
    assert (first["turns"], first["evidence"], first["version"]) == ([1, 3], [PART], 1)
    assert (first["kind"], first["created_at"]) == ("demo", "2026-11-01T09:00:00Z")
    assert found[1]["post_reveal"] is True
    assert "post_reveal" not in first
    assert found[3]["kind"] == "automatic"


def test_drafts_and_replaced_decisions_stay_behind(filled: Path) -> None:
    Label.objects.filter(rater__name="zoe").update(state=Label.State.DRAFT)
    assert len(exported("labels")) == 3
    run("import_adjudications", write_jsonl(filled / "again.jsonl", decision("c1", value=True)))
    assert Adjudication.objects.count() == 3
    assert [row["value"] for row in exported("adjudications")] == [None, True]


def test_a_set_exports_its_own_chats_and_criteria(filled: Path) -> None:
    run("import_chats", write_jsonl(filled / "one.jsonl", CHATS[1]), "--set", "one", "--split", "train")
    assert [(row["id"], row["split"]) for row in exported("chats", name="one")] == [("c1", "train")]
    assert [row["rater"] for row in exported("labels", name="one")] == ["auto"]
    assert exported("verdicts", name="one") == []
    other = rubric(criterion("kind"), name="Other")
    run("import_rubric", write_json(filled / "other.json", other))
    run("import_labels", write_jsonl(filled / "more.jsonl", label("c1", "kind")))
    assert "kind" not in {row["criterion"] for row in exported("labels")}


def test_verdicts_are_from_the_newest_run_of_each_judge_by_default(filled: Path) -> None:
    older = Run.objects.get(judge__name="judge-a")
    run(
        "import_verdicts",
        write_jsonl(filled / "new.jsonl", verdict("c2", value=False)),
        "--set",
        "calibration",
    )
    err = io.StringIO()
    call_command("export", "verdicts", "--set", "calibration", stdout=io.StringIO(), stderr=err)
    assert f"excluded run {older.pk}: judge-a has a newer run" in err.getvalue()
    assert {(row["judge"], row["value"]) for row in exported("verdicts")} == {
        ("judge-a", False),
        ("judge-b", False),
    }
    named = exported("verdicts", "--run", str(older.pk))
    assert [(row["chat_id"], row["criterion"], row.get("state")) for row in named] == [
        ("c2", "polite", None),
        ("c1", "polite", None),
        ("c1", "refunded", "unparsed"),
    ]


def test_a_wrong_set_run_or_place_is_refused(filled: Path) -> None:
    assert "there is no chat set 'x'" in refused("export", "chats", "--set", "x")
    assert "the chat set 'calibration' has no run 999999" in refused(
        "export", "verdicts", "--set", "calibration", "--run", 999999
    )
    assert "--run: only for verdicts and session_scores" in refused(
        "export", "chats", "--set", "calibration", "--run", 1
    )
    assert "invalid choice" in refused("export", "everything", "--set", "calibration")
    assert "is a folder" in refused("export", "chats", "--set", "calibration", "-o", filled)
    assert "cannot be written" in refused(
        "export", "chats", "--set", "calibration", "-o", filled / "no" / "file"
    )


def test_export_asks_as_often_for_forty_chats_as_for_two(
    filled: Path, django_assert_num_queries: Any
) -> None:
    run(
        "import_chats",
        write_jsonl(filled / "m.jsonl", *(chat(f"m{n}") for n in range(38))),
        "--set",
        "calibration",
    )
    run("import_labels", write_jsonl(filled / "l.jsonl", *(label(f"m{n}") for n in range(38))))
    assert ChatSetMember.objects.count() == 40
    for what, queries in (("chats", 2), ("labels", 4), ("adjudications", 4)):
        with django_assert_num_queries(queries):
            exported(what)


def test_a_failed_export_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ZeroDivisionError), replaced_file(path) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_straight() -> None:
    with replaced_file(Path(os.devnull)) as file:
        file.write("gone")
    assert not Path(os.devnull).is_file()


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    with replaced_file(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "new"
    with pytest.raises(InputProblem, match="is a folder"), replaced_file(tmp_path):
        pass
