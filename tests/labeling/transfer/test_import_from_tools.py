"""import_labels --format: exports of Label Studio and Argilla become labels like any others."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labeling.models.labels import Consensus, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from tests.factories.tool_exports import (
    ARGILLA_FLAT,
    ARGILLA_LIST,
    ARGILLA_NESTED,
    LABEL_STUDIO,
    LABEL_STUDIO_MIN,
    MAPPING,
    annotation,
    control,
    minimal,
    nested,
    record,
    task,
    tone,
)
from tests.files import chat, criterion, refused, rubric, run, write_json, write_jsonl

AT = datetime(2026, 3, 1, 10, 5, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, db: None) -> Path:
    """A workspace with three chats and two criteria, and the mapping."""
    criteria = criterion(allow_na=True), criterion("refunded", allow_na=True)
    run("import_rubric", write_json(tmp_path / "rubric.json", rubric(*criteria)))
    run("import_chats", write_jsonl(tmp_path / "c.jsonl", chat("c1"), chat("c2"), chat("c3")), "--set", "s")
    write_json(tmp_path / "map.json", MAPPING)
    return tmp_path


def imported(folder: Path, tool: str, records: Any, **mapping: Any) -> Any:
    return run("import_labels", *arguments(folder, tool, records, **mapping))


def wrong(folder: Path, tool: str, records: Any, **mapping: Any) -> str:
    """The refusal, without the folder; nothing was written."""
    message = refused("import_labels", *arguments(folder, tool, records, **mapping))
    assert not Label.objects.exists()
    assert not Rater.objects.exists()
    return message.replace(f"{folder}/", "")


def arguments(folder: Path, tool: str, records: Any, **mapping: Any) -> list[Any]:
    write_json(folder / "map.json", MAPPING | mapping)
    path = write_json(folder / "export.json", records)
    return [path, "--format", tool, "--map", folder / "map.json"]


def stored() -> set[tuple[str, str, str, bool | None, str]]:
    rows = Label.objects.values_list(
        "chat__external_id", "criterion__key", "rater__name", "value", "rationale"
    )
    return {(*row,) for row in rows}


# ---------- Label Studio ----------


def test_label_studio_tasks_become_labels_of_every_annotator(folder: Path) -> None:
    answer = imported(folder, "label-studio", LABEL_STUDIO)
    assert answer.document == {"created": 4, "unchanged": 0, "updated": 0}
    assert stored() == {
        ("c1", "polite", "Ada", True, ""),
        ("c1", "refunded", "Ada", True, ""),
        ("c1", "polite", "Ben", False, "Sighs."),
        ("c2", "polite", "Ada", None, ""),
    }
    assert "skipped: 1 skipped annotations" in answer.notes


def test_a_comment_of_a_text_area_is_the_rationale(folder: Path) -> None:
    why = {"type": "textarea", "from_name": "why", "to_name": "chat", "value": {"text": ["Sighs.", "Twice."]}}
    imported(folder, "label-studio", [task("c1", annotation(7, tone("Rude"), why))])
    assert stored() == {("c1", "polite", "Ada", False, "Sighs.\nTwice.")}


def test_times_are_kept_and_the_working_time_is_shared_by_the_answers(folder: Path) -> None:
    imported(folder, "label-studio", LABEL_STUDIO)
    rows = Label.objects.filter(rater__name="Ada").order_by("chat__external_id", "criterion__key")
    assert [(row.given_at, row.active_ms) for row in rows] == [(AT, 15_000), (AT, 15_000), (AT, 3_600_000)]


def test_label_studios_small_export_needs_the_same_mapping(folder: Path) -> None:
    imported(folder, "label-studio", LABEL_STUDIO_MIN)
    assert stored() == {
        ("c1", "polite", "Ada", True, "Warm."),
        ("c1", "refunded", "Ada", True, ""),
        ("c1", "polite", "Ben", False, ""),
    }
    assert Label.objects.get(rater__name="Ben").active_ms == 12_500


@pytest.mark.parametrize("field", ["id", "annotation_id", "lead_time"])
def test_the_small_export_has_no_chat_id_in_fields_that_label_studio_overwrites(
    folder: Path, field: str
) -> None:
    message = wrong(folder, "label-studio", LABEL_STUDIO_MIN, chat_id=field)
    assert f"export.json record 1, {field}: is Label Studio’s own {field} in JSON-MIN" in message
    assert "carry the chat’s id in another field of the task’s data, such as chat_id" in message


def test_an_id_of_the_tasks_data_is_a_chat_id_in_the_whole_export(folder: Path) -> None:
    whole = task("other", annotation(7, tone("Polite"))) | {"data": {"id": "c1"}}
    imported(folder, "label-studio", [whole], chat_id="id")
    assert stored() == {("c1", "polite", "Ada", True, "")}


def test_of_an_annotator_who_worked_twice_on_a_task_the_later_answers_count(folder: Path) -> None:
    later = annotation(7, tone("Rude"), updated_at="2026-04-01T00:00:00Z")
    answer = imported(folder, "label-studio", [task("c1", later, annotation(7, tone("Polite")))])
    assert stored() == {("c1", "polite", "Ada", False, "")}
    assert "skipped: 1 earlier answers by the same rater on the same chat" in answer.notes


def test_in_the_small_export_too_where_each_annotation_is_a_record(folder: Path) -> None:
    records = [
        minimal("c1", 7, tone="Rude", updated_at="2026-04-01T00:00:00Z"),
        minimal("c2", 7, tone="Polite"),
        minimal("c1", 7, tone="Polite"),
    ]
    answer = imported(folder, "label-studio", records)
    assert stored() == {("c1", "polite", "Ada", False, ""), ("c2", "polite", "Ada", True, "")}
    assert "skipped: 1 earlier answers by the same rater on the same chat" in answer.notes


def test_two_accounts_of_one_rater_and_two_tasks_with_one_chat_are_one_persons_answers(folder: Path) -> None:
    raters = {"7": "Ada", "8": "Ada"}
    later = annotation(8, tone("Rude"), updated_at="2026-04-01T00:00:00Z")
    imported(
        folder, "label-studio", [task("c1", later), task("c1", annotation(7, tone("Polite")))], raters=raters
    )
    assert stored() == {("c1", "polite", "Ada", False, "")}


def test_a_later_annotation_without_an_answer_takes_nothing_away(folder: Path) -> None:
    empty = annotation(7, updated_at="2026-04-01T00:00:00Z")
    skip = annotation(7, tone("Skip"), updated_at="2026-05-01T00:00:00Z")
    imported(folder, "label-studio", [task("c1", annotation(7, tone("Polite")), empty, skip)])
    assert stored() == {("c1", "polite", "Ada", True, "")}


def test_a_comment_without_an_answer_is_counted_as_passed_over(folder: Path) -> None:
    why = control("why", "text", ["Sighs."])
    answer = imported(
        folder, "label-studio", [task("c1", annotation(7, tone("Skip"), why), annotation(8, why))]
    )
    assert not Label.objects.exists()
    assert "skipped: 2 comments without an answer" in answer.notes


@pytest.mark.parametrize("seconds", [10**400, 1e308, -(10**400), -1])
def test_a_working_time_beyond_all_bounds_is_cut(folder: Path, seconds: float) -> None:
    imported(folder, "label-studio", [task("c1", annotation(7, tone("Polite"), lead_time=seconds))])
    assert Label.objects.get().active_ms == (3_600_000 if seconds > 0 else 0)


def test_predictions_and_drafts_are_nobodys_labels(folder: Path) -> None:
    guess = {"result": [tone("Rude")], "model_version": "m"}
    answer = imported(folder, "label-studio", [task("c1", predictions=[guess], drafts=[guess, guess])])
    assert not Label.objects.exists()
    assert "skipped: 1 predictions of a model" in answer.notes
    assert "skipped: 2 drafts" in answer.notes
    assert "no record answers 'tone' (polite)" in answer.notes


def test_whoever_the_mapping_does_not_name_keeps_address_or_number(folder: Path) -> None:
    people = [annotation(by, tone("Polite")) for by in (8, {"id": 9, "email": "cleo@example.org"})]
    imported(folder, "label-studio", [task("c1", *people)])
    assert set(Rater.objects.values_list("name", flat=True)) == {"Label Studio 8", "cleo@example.org"}


def test_an_annotator_without_a_name_must_be_named_by_the_mapping(folder: Path) -> None:
    records = [task("c1", annotation(None, tone("Polite")))]
    assert "export.json record 1, annotations[0].completed_by: names no rater" in wrong(
        folder, "label-studio", records
    )
    imported(folder, "label-studio", records, raters={"": "Somebody"})
    assert stored() == {("c1", "polite", "Somebody", True, "")}


# ---------- Argilla ----------


def test_argillas_nested_records_become_labels(folder: Path) -> None:
    answer = imported(folder, "argilla", ARGILLA_NESTED)
    assert stored() == {
        ("c1", "polite", "Ada", True, "Warm."),
        ("c1", "polite", "Argilla b", False, ""),
        ("c2", "refunded", "Ada", True, ""),
    }
    assert "skipped: 1 responses that are discarded" in answer.notes


def test_of_argillas_flattened_records_only_what_is_submitted_counts(folder: Path) -> None:
    answer = imported(folder, "argilla", ARGILLA_FLAT)
    assert stored() == {("c1", "polite", "Ada", True, "Warm.")}
    for what in ("1 responses that are draft", "1 responses that are discarded", "1 records without a"):
        assert f"skipped: {what}" in answer.notes


def test_argillas_lists_of_responses_need_the_place_of_the_chats_id(folder: Path) -> None:
    assert "record 1, chat_id: no chat 'uuid-1'" in wrong(folder, "argilla", ARGILLA_LIST)
    imported(folder, "argilla", ARGILLA_LIST, chat_id="external_id")
    assert stored() == {("c1", "polite", "Ada", True, "Warm."), ("c1", "refunded", "Ada", True, "")}
    assert set(Label.objects.values_list("given_at", flat=True)) == {AT}


def test_of_two_accounts_of_one_rater_the_later_response_counts(folder: Path) -> None:
    def given(by: str, choice: str, at: str) -> dict[str, Any]:
        return {"user_id": by, "values": {"tone": {"value": choice}}, "updated_at": at}

    responses = [given("9f1c", "Rude", "2026-04-01T00:00:00Z"), given("7", "Polite", "2026-03-01T00:00:00Z")]
    answer = imported(folder, "argilla", [record("c1", responses=responses)])
    assert stored() == {("c1", "polite", "Ada", False, "")}
    assert Label.objects.get().given_at.month == 4
    assert "skipped: 1 earlier answers by the same rater on the same chat" in answer.notes


def test_a_chats_id_may_be_deep_in_the_metadata(folder: Path) -> None:
    records = [record("c1", id="other", responses={"tone": [nested(["Polite"])]})]
    imported(folder, "argilla", records, chat_id="metadata.chat.key")
    assert stored() == {("c1", "polite", "Ada", True, "")}


# ---------- as every import ----------


@pytest.mark.parametrize(
    ("tool", "records"),
    [
        ("label-studio", LABEL_STUDIO),
        ("label-studio", LABEL_STUDIO_MIN),
        ("argilla", ARGILLA_NESTED),
        ("argilla", ARGILLA_FLAT),
    ],
)
def test_the_same_export_again_changes_nothing(folder: Path, tool: str, records: Any) -> None:
    first = imported(folder, tool, records).document
    before = list(Label.objects.order_by("pk").values())
    assert imported(folder, tool, records).document == {
        "created": 0,
        "unchanged": first["created"],
        "updated": 0,
    }
    assert list(Label.objects.order_by("pk").values()) == before


def test_a_changed_answer_is_a_revision_with_history_and_consensus(folder: Path) -> None:
    imported(folder, "label-studio", [task("c1", annotation(7, tone("Polite")))])
    seq = Criterion.objects.get(key="polite").labels_seq
    answer = imported(folder, "label-studio", [task("c1", annotation(7, tone("Rude")))])
    assert answer.document == {"created": 0, "unchanged": 0, "updated": 1}
    label = Label.objects.get()
    assert (label.revision, label.value, label.source, label.version.number) == (2, False, "import", 1)
    assert list(LabelRevision.objects.order_by("number").values_list("value", flat=True)) == [True, False]
    assert Consensus.objects.get().state == "false"
    assert Criterion.objects.get(key="polite").labels_seq > seq


def test_json_lines_and_one_line_arrays_are_read_too(folder: Path) -> None:
    lines = write_jsonl(folder / "lines.jsonl", *LABEL_STUDIO)
    flat = folder / "flat.json"
    flat.write_text(json.dumps(LABEL_STUDIO), encoding="utf-8")
    options = ["--format", "label-studio", "--map", folder / "map.json"]
    assert run("import_labels", lines, *options).document["created"] == 4
    assert run("import_labels", flat, *options).document["unchanged"] == 4


# ---------- what is refused ----------


def test_every_unknown_choice_is_named_at_once(folder: Path) -> None:
    records = [
        task("c1", annotation(7, tone("Meh"), control("stars", "rating", 6)), annotation(8, tone("Meh"))),
        task("c2", annotation(7, tone("Skip"))),
        task("c3", annotation(7, tone("polite"))),
    ]
    assert wrong(folder, "label-studio", records) == (
        "export.json: choices that the mapping does not name: "
        "polite: 'Meh' (2×), polite: 'polite' (1×), refunded: 6 (1×)"
    )


def test_a_question_of_free_text_under_choices_is_refused_before_it_fills_the_memory(folder: Path) -> None:
    records = [task("c1", annotation(7, *(tone(f"It was {n}") for n in range(1_001))))]
    assert "record 1, tone: more than 1,000 choices that the mapping does not name" in wrong(
        folder, "label-studio", records
    )


def test_white_space_round_an_address_makes_no_other_rater(folder: Path) -> None:
    imported(folder, "label-studio", [task("c1", annotation(" ben@example.org ", tone("Polite")))])
    assert stored() == {("c1", "polite", "Ben", True, "")}


def test_an_export_is_read_twice_and_so_no_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    options = ["--format", "argilla", "--map", folder / "map.json"]
    assert "pipe: is a pipe" in refused("import_labels", folder / "pipe", *options)


def test_true_is_not_one_and_a_choice_left_out_on_purpose_is_no_label(folder: Path) -> None:
    records = [record("c1", responses={"stars": [nested(True)], "tone": [nested("Skip")]})]
    criteria = {"polite": MAPPING["criteria"]["polite"], "refunded": {"question": "stars", "true": [1]}}  # type: ignore[index]
    assert "refunded: True" in wrong(folder, "argilla", records, criteria=criteria)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            [task("c1"), task("c9", annotation(7, tone("Polite")))],
            "export.json record 2, chat_id: no chat 'c9'",
        ),
        ([task("c1", annotation(7, result=3))], "record 1, annotations[0].result: must be a list, not 3"),
        ([task("c1", annotation(7, lead_time="x"))], "annotations[0].lead_time: must be a number of seconds"),
        ([task("c1", annotation(7, updated_at="soon"))], "updated_at: must be an ISO 8601 time"),
        ([task("c1", annotation([7]))], "completed_by: must be an id or an address"),
        ([{"id": 1, "data": {}}], "record 1, annotations: is missing"),
        ([task("c1") | {"data": {}}], "record 1, data.chat_id: is missing"),
        (
            [task("c1", annotation(7, tone("Polite"), tone("Rude")))],
            "record 1, tone: ['Polite', 'Rude'] has more than one answer on polite",
        ),
        (
            [task("c1", annotation(7, control("tone", "taxonomy", [["a"]])))],
            "annotations[0].tone: holds no choice, rating, number or text",
        ),
        ([task("c1", annotation({"id": {}}))], "completed_by: must be an id or an address, not {}"),
        ([task("c1", annotation(" ", tone("Polite")))], "completed_by: names no rater"),
        ([3], "record 1: must be an object: expected a list of objects"),
    ],
)
def test_a_wrong_record_is_refused_with_its_number_and_nothing_is_written(
    folder: Path, records: Any, message: str
) -> None:
    assert message in wrong(folder, "label-studio", records)


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        (3, "responses: must be an object, not 3"),
        ({"tone": 3}, "responses.tone: must be a list, not 3"),
        ([{"user_id": "a", "values": {"tone": "Polite"}}], "responses[0].values.tone: must be an object"),
        ({"tone": [{"value": "Polite"}]}, "responses.tone[0].user_id: names no rater"),
        ({"tone": [nested("Polite", "  ")]}, "responses.tone[0].user_id: names no rater"),
        ({"tone": [{"value": "Polite", "user_id": {}}]}, "user_id: must be an id or an address, not {}"),
        ({"tone": [{"value": "Polite", "user_id": True}]}, "user_id: must be an id or an address, not True"),
    ],
)
def test_a_wrong_response_is_refused(folder: Path, responses: Any, message: str) -> None:
    assert message in wrong(folder, "argilla", [record("c1", responses=responses)])


def test_flattened_lists_must_be_of_one_length(folder: Path) -> None:
    flat = {"id": "c1", "tone.responses": ["Polite"], "tone.responses.users": []}
    assert "tone.responses: has not as many values as users" in wrong(folder, "argilla", [flat])


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"criteria": {}}, "criteria: names no criterion"),
        ({"criteria": {"nope": {"question": "q", "true": ["a"]}}}, "criteria.nope: no such criterion"),
        ({"criteria": {"polite": {"question": "q"}}}, "criteria.polite.true: no choices under"),
        (
            {"criteria": {"polite": {"question": "q", "true": ["a"], "false": ["a"]}}},
            "criteria.polite.false: 'a' appears under two answers",
        ),
        (
            {"criteria": {"polite": {"question": "q", "true": ["a"], "no_answer": ["a"]}}},
            "criteria.polite.no_answer: 'a' appears under an answer, too",
        ),
        (
            {"criteria": {"polite": {"question": "q", "ture": ["a"]}}},
            "criteria.polite.ture: no such field; known fields are comment, false, no_answer",
        ),
        (
            {"criteria": {"polite": {"question": "q", "true": [[]]}}},
            "criteria.polite.true: must be a list of",
        ),
        ({"raters": {"7": 3}}, "raters.7: must be text, not 3"),
    ],
)
def test_a_wrong_mapping_is_refused(folder: Path, mapping: Any, message: str) -> None:
    assert message in wrong(folder, "label-studio", LABEL_STUDIO, **mapping)


def test_the_tool_and_the_mapping_go_together(folder: Path) -> None:
    assert "--format and --map go together" in refused("import_labels", folder / "x", "--format", "argilla")
    assert "invalid choice" in refused("import_labels", folder / "x", "--format", "doccano")
