"""import_verdicts: a finished run for each judge of a file; the same file, the same runs."""

import random
from pathlib import Path
from typing import Any

import pytest

from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from evaluation.runs.services import verdicts as verdicts_service
from evaluation.runs.services.verdicts import verdicts_import
from labeling.models.chats import ChatSetMember
from labeling.models.people import AuditEvent
from tests.factories.rows import make_chat, make_criterion, make_rubric, make_set
from tests.files import refused, run, verdict, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def workspace(db: None) -> None:
    rubric = make_rubric("polite", "brief")
    chats = [make_chat(f"c{n}") for n in range(1, 4)]
    make_set(rubric, *chats)
    make_set(rubric, *chats[:2], name="small")
    make_criterion("elsewhere", rubric=make_rubric(name="Other"))
    ChatSetMember.objects.filter(chat=chats[2], chat_set__name="calibration").update(split="holdout")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "verdicts.jsonl"


def runs(path: Path, name: str = "calibration") -> list[dict[str, Any]]:
    found = run("import_verdicts", path, "--set", name).document["runs"]
    assert isinstance(found, list)
    return found


def test_an_import_stands_in_the_log(path: Path) -> None:
    (imported,) = runs(write_jsonl(path, verdict(), verdict("c2")))
    runs(path)
    first, again = AuditEvent.objects.filter(verb="verdicts imported").order_by("pk")
    assert (first.detail["file"], first.detail["created"], first.detail["runs"]) == (
        "verdicts.jsonl",
        2,
        [imported["id"]],
    )
    assert (again.detail["created"], again.detail["new_runs"]) == (0, 0)


def test_each_judge_of_a_file_gets_one_finished_run_over_the_whole_set(path: Path) -> None:
    rows = [verdict(), verdict("c2", value=False), verdict(judge="judge-b", value=None)]
    first, second = runs(write_jsonl(path, *rows))
    assert (first["judge"], first["verdicts"]) == ("judge-a", 2)
    assert (second["judge"], second["verdicts"]) == ("judge-b", 1)
    stored = Run.objects.select_related("judge").get(pk=first["id"])
    assert (stored.purpose, stored.state, stored.units_total) == ("import", "done", 0)
    assert stored.finished_at is not None
    assert (stored.judge.kind, stored.judge.engine, stored.options["criteria"]) == (
        "imported",
        "",
        ["polite"],
    )
    covered = RunChat.objects.filter(run=stored).values_list("chat__external_id", "split")
    assert list(covered) == [("c1", "dev"), ("c2", "dev"), ("c3", "holdout")]


def test_a_verdict_keeps_all_that_its_line_says(path: Path) -> None:
    runs(write_jsonl(path, verdict(rationale="m2.", p_true=1), verdict("c2", state="refused", value=None)))
    read, refusal = Verdict.objects.order_by("chat_id")
    assert (read.state, read.value, read.p_true, read.rationale, read.read_by) == (
        "read",
        True,
        1.0,
        "m2.",
        "import",
    )
    assert (refusal.state, refusal.value, refusal.p_true) == ("refused", None, None)


def test_a_verdict_that_was_not_read_needs_no_value(path: Path) -> None:
    line = verdict(state="unparsed")
    del line["value"]
    runs(write_jsonl(path, line))
    assert Verdict.objects.get().value is None


def test_the_same_file_again_returns_the_same_runs(path: Path) -> None:
    rows = [
        verdict(f"c{n}", criterion, judge=judge)
        for n in (1, 2)
        for criterion in ("polite", "brief")
        for judge in "ab"
    ]
    before = runs(write_jsonl(path, *rows))
    assert runs(path) == before
    random.Random(7).shuffle(rows)
    reordered = runs(write_jsonl(path, *rows))
    assert sorted(reordered, key=lambda row: row["id"]) == sorted(before, key=lambda row: row["id"])
    assert (Run.objects.count(), Verdict.objects.count(), Judge.objects.count()) == (2, 8, 2)


def test_other_verdicts_of_a_judge_are_another_run_of_the_same_judge(path: Path) -> None:
    before = runs(write_jsonl(path, verdict(), verdict(judge="judge-b")))
    after = runs(write_jsonl(path, verdict(value=False), verdict(judge="judge-b")))
    assert [row["id"] for row in after] != [row["id"] for row in before]
    assert after[1] == before[1]
    assert (Judge.objects.count(), Run.objects.count()) == (2, 3)


def test_another_set_is_another_run(path: Path) -> None:
    write_jsonl(path, verdict())
    assert runs(path)[0]["id"] != runs(path, "small")[0]["id"]
    assert Judge.objects.count() == 1


def test_chunks_do_not_change_the_outcome(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts_service, "LINES_AT_ONCE", 2)
    monkeypatch.setattr(verdicts_service, "CHATS_AT_ONCE", 1)
    rows = [verdict(f"c{n}", criterion) for n in (1, 2, 3) for criterion in ("polite", "brief")]
    assert runs(write_jsonl(path, *rows))[0]["verdicts"] == Verdict.objects.count() == 6
    twice = [*rows[:5], verdict("c3", "brief", value=False), rows[0]]
    message = refused("import_verdicts", write_jsonl(path, *twice), "--set", "calibration")
    assert "line 7, judge: the same chat, criterion and judge are already on line 1" in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"chat_id": "c3"}, "chat_id: no chat 'c3' in the set 'small'"),
        ({"criterion": "elsewhere"}, "criterion: no criterion 'elsewhere' in the rubric 'Test rubric'"),
        ({"state": "lost"}, "state: must be one of read, unparsed"),
        ({"state": "failed"}, "value: must be null where the state is failed"),
        ({"p_true": -0.1}, "p_true: must be a number from 0 to 1"),
        ({"p_true": True}, "p_true: must be a number from 0 to 1"),
        ({"judge": ""}, "judge: must not be blank"),
        ({"value": "yes"}, "value: must be true, false or null"),
        ({"chat_id": "c2"}, "judge: the same chat, criterion and judge are already on line 1"),
    ],
)
def test_a_wrong_verdict_names_its_line_and_leaves_no_run(
    path: Path, line: dict[str, Any], words: str
) -> None:
    message = refused("import_verdicts", write_jsonl(path, verdict("c2"), verdict() | line), "--set", "small")
    assert f"verdicts.jsonl line 2, {words}" in message
    assert Run.objects.count() == Judge.objects.count() == Verdict.objects.count() == 0


def test_a_verdict_without_value_is_refused(path: Path) -> None:
    line = verdict()
    del line["value"]
    assert "line 1, value: is missing" in refused(
        "import_verdicts", write_jsonl(path, line), "--set", "small"
    )


def test_judges_of_the_demo_say_so(path: Path) -> None:
    verdicts_import(path=write_jsonl(path, verdict()), set_name="small", demo=True)
    assert Judge.objects.get().config["demo"] is True


def test_unknown_fields_are_counted_on_stderr(path: Path) -> None:
    answer = run(
        "import_verdicts", write_jsonl(path, verdict(model="x"), verdict("c2", model="x")), "--set", "small"
    )
    assert "ignored field 'model' on 2 lines" in answer.notes
