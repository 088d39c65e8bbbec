"""Sets as Label Studio tasks and Argilla records: what we export, our importers read back equal."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from django.core.management import call_command
from openpyxl import load_workbook

from evaluation.models.prompts import ArticleVersion
from evaluation.prompts.queries.versions import champions
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from tests.factories.archives import emptied
from tests.files import chat, criterion, label, refused, rubric, run, verdict, write_json, write_jsonl

HOSTILE = "=1+1 <script>\"&' \u2028 😀"
RUBRIC = rubric(
    criterion(),
    criterion("refunded", allow_na=True, question=HOSTILE),
    criterion("brief", guideline="Short."),
)
CHATS = [
    chat("c2", "Hi", HOSTILE, topic="refund", split="holdout") | {"started_at": "2026-11-01T10:00:00Z"},
    chat("c1", "Hello", "World"),
    chat("c0", "No label"),
]
AT = "2026-11-01T09:00:00Z"
LABELS = [
    label("c2", rationale=HOSTILE, created_at=AT, active_ms=4000),
    label("c2", "refunded", value=None, created_at=AT, active_ms=4000),
    label("c2", rater="zoe", value=False, created_at=AT),
    label("c1", rater="7", value=False, rationale="two\nlines", created_at=AT),
]
VERDICTS = [
    verdict("c2", p_true=0.25, rationale=HOSTILE),
    verdict("c2", "refunded", value=None),
    verdict("c1", "refunded", state="unparsed", value=None),
]


@pytest.fixture
def filled(db: None, tmp_path: Path) -> Path:
    run("import_rubric", write_json(tmp_path / "rubric.json", RUBRIC))
    run("import_chats", write_jsonl(tmp_path / "chats.jsonl", *CHATS), "--set", "calibration")
    run("import_labels", write_jsonl(tmp_path / "labels.jsonl", *LABELS))
    run("import_verdicts", write_jsonl(tmp_path / "verdicts.jsonl", *VERDICTS), "--set", "calibration")
    return tmp_path


def written(what: str, folder: Path, kind: str = "zip") -> Path:
    path = folder / f"{what}.{kind}"
    run("export", what, "--set", "calibration", "--format", kind, "-o", path)
    return path


def unpacked(path: Path) -> Path:
    folder = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def answers(*without: str) -> list[Any]:
    names = [name for name in ("value", "rationale", "given_at", "active_ms") if name not in without]
    rows = Label.objects.order_by("chat__external_id", "criterion__key", "rater__name")
    return list(rows.values_list("chat__external_id", "criterion__key", "rater__name", *names))


def forget_labels() -> None:
    for model in (Consensus, LabelRevision, Label, Rater):
        model._default_manager.all().delete()


def test_label_studio_reads_back_equal(filled: Path) -> None:
    before, folder = answers(), unpacked(written("label_studio", filled))
    forget_labels()
    files = folder / "tasks.json", "--format", "label-studio", "--map", folder / "mapping.json"
    assert run("import_labels", *files).document["created"] == len(LABELS)
    assert answers() == before


def test_argilla_reads_back_equal_but_for_times(filled: Path) -> None:
    before, folder = answers("given_at", "active_ms"), unpacked(written("argilla", filled))
    forget_labels()
    files = folder / "records.json", "--format", "argilla", "--map", folder / "mapping.json"
    assert run("import_labels", *files).document["created"] == len(LABELS)
    assert answers("given_at", "active_ms") == before


def test_a_task_has_the_dialogue_annotations_and_predictions(filled: Path) -> None:
    folder = unpacked(written("label_studio", filled))
    tasks = document(folder / "tasks.json")
    assert [task["data"]["chat_id"] for task in tasks] == ["c2", "c1", "c0"]
    first = tasks[0]
    assert first["data"]["dialogue"] == [
        {"author": "user", "text": "Hi"},
        {"author": "assistant", "text": HOSTILE},
    ]
    assert [one["lead_time"] for one in first["annotations"]] == [8.0, 0.0]
    assert "completed_by" not in first["annotations"][0], "Label Studio takes its own accounts only"
    (prediction,) = first["predictions"]
    assert [one["value"] for one in prediction["result"]] == [
        {"choices": ["True"]},
        {"text": [HOSTILE]},
        {"choices": ["Not applicable"]},
    ]
    assert tasks[1]["predictions"] == [], "a verdict that could not be read is no prediction"


def test_the_configuration_has_a_control_for_every_result(filled: Path) -> None:
    folder = unpacked(written("label_studio", filled))
    view = Xml.parse(folder / "labeling_config.xml").getroot()  # noqa: S314  our own
    controls = {one.get("name") for one in view.iter() if one.get("toName") == "dialogue"}
    used = {
        one["from_name"]
        for task in document(folder / "tasks.json")
        for part in (*task["annotations"], *task["predictions"])
        for one in part["result"]
    }
    assert used <= controls
    assert view.find("Paragraphs[@name='dialogue']") is not None
    assert HOSTILE in [one.get("value") for one in view.iter("Header")]
    choices = {one.get("name"): [part.get("value") for part in one] for one in view.iter("Choices")}
    assert choices["polite_answer"] == ["True", "False"]
    assert choices["refunded_answer"] == ["True", "False", "Not applicable"]


def test_an_argilla_folder_has_settings_dataset_and_records(filled: Path) -> None:
    folder = unpacked(written("argilla", filled))
    settings, records = document(folder / ".argilla/settings.json"), document(folder / "records.json")
    assert document(folder / ".argilla/dataset.json")["name"] == "calibration"
    questions = {one["name"] for one in settings["questions"]}
    assert len(questions) == len(settings["questions"]) == 6
    assert settings["fields"][0]["settings"]["type"] == "chat"
    for record in records:
        assert record["responses"].keys() | record["suggestions"].keys() <= questions
    polite = records[0]["suggestions"]["polite_answer"]
    assert (polite["value"], polite["score"]) == ("True", 0.25)
    assert records[2]["status"] == "pending"


def test_rubric_prompts_and_knowledge_read_back_equal(filled: Path) -> None:
    (filled / "articles/payment").mkdir(parents=True)
    (filled / "articles/payment/cards.md").write_text("# Cards\n\nAt the till.", encoding="utf-8")
    (filled / "articles/returns.v2.md").write_text("Thirty days.", encoding="utf-8")
    run("import_knowledge", filled / "articles")
    before = criteria()
    run("export_prompts", filled / "champions")
    rubric_file = written("rubric", filled, "json")
    knowledge, prompts = unpacked(written("knowledge", filled)), unpacked(written("prompts", filled))
    articles, texts = article_texts(), prompt_texts()
    assert sorted(path.name for path in prompts.iterdir()) == ["brief.md", "polite.md", "refunded.md"]
    assert run("import_knowledge", knowledge).document == {"created": 0, "unchanged": 2, "updated": 0}
    assert run("import_prompts", prompts, "--reason", "Again").document["unchanged"] == 3
    emptied()
    run("import_knowledge", knowledge)
    run("import_rubric", rubric_file)
    run("import_prompts", prompts, "--reason", "Moved")
    assert criteria() == before
    assert article_texts() == articles
    assert prompt_texts() == texts


def criteria() -> list[Any]:
    versions = Criterion.objects.order_by("key").values_list(
        *("key", "dimension__name", "tier", "critical", "state", "articles", "evidence_on_fail"),
        *("versions__question", "versions__definition", "versions__guideline", "versions__allow_na"),
    )
    return list(versions)


def article_texts() -> list[Any]:
    return list(ArticleVersion.objects.order_by("article__key").values_list("article__key", "title", "text"))


def prompt_texts() -> dict[str, str]:
    found = champions(criteria=list(Criterion.objects.all())).values()
    return {version.criterion.key: version.text for version in found}


def test_excel_has_the_rows_of_the_csv_and_no_formula(filled: Path) -> None:
    for what in ("labels", "verdicts"):
        book = load_workbook(written(what, filled, "xlsx"))
        rows = [[cell.value for cell in row] for row in book.worksheets[0].iter_rows()]
        table = list(csv.reader(io.StringIO(run_text("export", what, "--format", "csv"))))
        assert rows[0] == table[0]
        assert len(rows) == len(table)
        at = rows[0].index("rationale")
        assert rows[1][at] == HOSTILE, "the text comes back as it is"
        cell = book.worksheets[0].cell(2, at + 1)
        assert cell.data_type == "s"
        assert cell.quotePrefix


def run_text(command: str, what: str, *args: str) -> str:
    out = io.StringIO()
    call_command(command, what, "--set", "calibration", *args, stdout=out)
    return out.getvalue().removeprefix("\ufeff")


def test_chats_in_excel_are_a_row_a_message(filled: Path) -> None:
    sheet = load_workbook(written("chats", filled, "xlsx")).worksheets[0]
    rows = [dict(zip([cell.value for cell in sheet[1]], row, strict=True)) for row in sheet.values][1:]
    assert len(rows) == sum(len(one["messages"]) for one in CHATS)
    assert [(row["id"], row["n"], row["role"]) for row in rows[:2]] == [
        ("c2", 1, "user"),
        ("c2", 2, "assistant"),
    ]
    assert rows[1]["content"] == HOSTILE
    assert Chat.objects.count() == 3


def test_a_format_that_does_not_fit_is_one_line(filled: Path) -> None:
    here = "--set", "calibration"
    assert "use zip" in refused("export", "argilla", *here, "--format", "csv")
    assert "-o: name a file" in refused("export", "argilla", *here)
    assert "--run: only for verdicts and" in refused("export", "rubric", *here, "--run", "1")
