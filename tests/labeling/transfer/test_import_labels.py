"""import_labels: a changed answer is a revision, the same answer no change, consensus follows."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from labeling.models.labels import Consensus, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.transfer.services import labels as labels_service
from tests.factories.rows import make_chat, make_criterion, make_rater, make_rubric
from tests.files import label, refused, run, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def workspace(db: None) -> None:
    rubric = make_rubric("polite", "brief")
    make_criterion("refunded", rubric=rubric, allow_na=True)
    for name in ("c1", "c2", "c3"):
        make_chat(name, messages=[("user", "Where is it?"), ("assistant", "On its way."), ("user", "Thanks")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def counts(path: Path) -> tuple[int, int, int]:
    document = run("import_labels", path).document
    return document["created"], document["unchanged"], document["updated"]


def sequence(key: str = "polite") -> int:
    return Criterion.objects.get(key=key).labels_seq


def consensus() -> dict[tuple[str, str], str]:
    rows = Consensus.objects.values_list("chat__external_id", "criterion__key", "state")
    return {(chat, key): state for chat, key, state in rows}


def test_a_label_is_stored_submitted_with_its_first_revision(path: Path) -> None:
    line = label(rationale="m2 says so", turns=[3, 2], created_at="2026-11-01T10:00:00", kind="automatic")
    assert counts(write_jsonl(path, line)) == (1, 0, 0)
    stored, revision = Label.objects.get(), LabelRevision.objects.get()
    for row in (stored, revision):
        assert (row.value, row.rationale, row.state, row.post_reveal) == (
            True,
            "m2 says so",
            "submitted",
            False,
        )
        assert row.evidence == [{"n": 2}, {"n": 3}]
        assert row.version.number == 1
    assert (stored.source, stored.revision, revision.number) == ("import", 1, 1)
    assert stored.given_at == revision.created_at
    assert stored.given_at.isoformat() == "2026-11-01T10:00:00+00:00"
    assert (stored.rater.name, stored.rater.kind, stored.rater.user) == ("mara", "automatic", None)


def test_without_a_time_a_label_is_given_now(path: Path) -> None:
    before = timezone.now()
    counts(write_jsonl(path, label()))
    assert before <= Label.objects.get().given_at <= timezone.now()


def test_evidence_and_turns_are_merged_in_the_chats_order(path: Path) -> None:
    part = {"message": 1, "start": 0, "end": 5, "quote": "Where"}
    counts(write_jsonl(path, label(turns=[3], evidence=[part])))
    assert Label.objects.get().evidence == [{"n": 1, "start": 0, "end": 5, "quote": "Where"}, {"n": 3}]


def test_the_same_file_again_changes_nothing_and_no_report_goes_stale(path: Path) -> None:
    write_jsonl(
        path,
        label(rationale="r", turns=[1]),
        label("c2", value=False),
        label(criterion="refunded", value=None),
    )
    assert counts(path) == (3, 0, 0)
    before = list(Label.objects.order_by("pk").values()), sequence()
    assert counts(path) == (0, 3, 0)
    assert (list(Label.objects.order_by("pk").values()), sequence()) == before
    assert LabelRevision.objects.count() == 3


@pytest.mark.parametrize(
    "change", [{"value": False}, {"rationale": "new"}, {"turns": [2]}, {"post_reveal": True}]
)
def test_a_different_answer_in_a_later_file_is_a_revision(path: Path, change: dict[str, Any]) -> None:
    counts(write_jsonl(path, label(), label("c2")))
    assert counts(write_jsonl(path, label(**change), label("c2"))) == (0, 1, 1)
    changed = Label.objects.get(chat__external_id="c1")
    assert changed.revision == 2
    assert [row.number for row in LabelRevision.objects.filter(label=changed).order_by("number")] == [1, 2]
    newest = LabelRevision.objects.get(label=changed, number=2)
    assert (newest.value, newest.rationale, newest.evidence) == (
        changed.value,
        changed.rationale,
        changed.evidence,
    )


def test_a_draft_from_the_screen_becomes_submitted_and_keeps_its_history(path: Path) -> None:
    criterion = Criterion.objects.get(key="polite")
    Label.objects.create(
        chat=make_chat("c9"),
        criterion=criterion,
        rater=make_rater("mara"),
        version=criterion.versions.get(),
        value=True,
        revision=4,
        active_ms=900,
        given_at=timezone.now(),
    )
    assert counts(write_jsonl(path, label("c9"))) == (0, 0, 1)
    stored = Label.objects.get()
    assert (stored.state, stored.revision, stored.active_ms) == ("submitted", 5, 900)


def test_consensus_and_sequence_follow_in_the_same_import(path: Path) -> None:
    rows = [label(rater=name, value=value) for name, value in (("a", True), ("b", True), ("c", False))]
    counts(write_jsonl(path, *rows, label("c2", rater="a"), label("c2", rater="b", value=False)))
    assert consensus() == {("c1", "polite"): "true", ("c2", "polite"): "unresolved"}
    assert (sequence("polite"), sequence("brief")) == (1, 0)
    counts(write_jsonl(path, label(rater="a", value=False), label("c3", rater="x", post_reveal=True)))
    assert consensus() == {("c1", "polite"): "false", ("c2", "polite"): "unresolved"}
    assert sequence("polite") == 2


def test_a_label_binds_to_the_version_it_names_else_to_the_newest(path: Path) -> None:
    criterion = Criterion.objects.get(key="polite")
    CriterionVersion.objects.create(
        criterion=criterion, number=2, question="New?", definition="d", content_hash="h"
    )
    counts(write_jsonl(path, label("c1", version=1), label("c2")))
    assert list(Label.objects.order_by("chat__external_id").values_list("version__number", flat=True)) == [
        1,
        2,
    ]
    assert "line 1, version: polite has no version 3" in refused(
        "import_labels", write_jsonl(path, label(version=3))
    )


def test_an_answer_stays_bound_to_its_version_when_the_criterion_moves_on(path: Path) -> None:
    counts(write_jsonl(path, label()))
    criterion = Criterion.objects.get(key="polite")
    CriterionVersion.objects.create(
        criterion=criterion, number=2, question="New?", definition="d", content_hash="h"
    )
    assert counts(path) == (0, 1, 0)
    assert Label.objects.get().version.number == 1


def test_the_same_cell_twice_in_a_file_is_refused_with_both_lines(path: Path) -> None:
    rows = [label(), label("c2"), label(value=False)]
    message = refused("import_labels", write_jsonl(path, *rows))
    assert "labels.jsonl line 3, rater: same chat, criterion and rater as line 1" in message
    assert Label.objects.count() == 0
    assert Rater.objects.count() == 0


def test_the_same_cell_twice_is_found_across_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels_service, "LINES_AT_ONCE", 2)
    rows = [label("c1"), label("c2"), label("c3"), label("c2")]
    assert "line 4, rater: same chat, criterion and rater as line 2" in refused(
        "import_labels", write_jsonl(path, *rows)
    )
    counts(write_jsonl(path, *rows[:3]))
    assert "line 4, rater: same" in refused("import_labels", write_jsonl(path, *rows))
    changed = [row | {"value": False} for row in rows]
    assert "line 4, rater: same" in refused("import_labels", write_jsonl(path, *changed))
    assert set(Label.objects.values_list("value", flat=True)) == {True}


def test_chunks_and_many_raters_do_not_change_the_outcome(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [label(f"c{n % 3 + 1}", rater=f"r{n}", value=n % 2 == 0) for n in range(30)]
    for few, at_once in ((100, 5000), (1, 7)):
        monkeypatch.setattr(labels_service, "FEW_RATERS", few)
        monkeypatch.setattr(labels_service, "LINES_AT_ONCE", at_once)
        created, unchanged, updated = counts(write_jsonl(path, *rows))
        assert (created + unchanged, updated) == (30, 0)
    flipped = [row | {"value": not row["value"]} for row in reversed(rows)]
    assert counts(write_jsonl(path, *flipped)) == (0, 0, 30)
    assert {row.rater.name: row.value for row in Label.objects.select_related("rater")} == {
        f"r{n}": n % 2 == 1 for n in range(30)
    }


def test_a_rater_keeps_its_kind(path: Path) -> None:
    counts(write_jsonl(path, label(rater="gold", kind="automatic"), label("c2", rater="gold")))
    assert Rater.objects.get().kind == "automatic"
    message = refused("import_labels", write_jsonl(path, label("c3", rater="gold", kind="person")))
    assert "line 1, kind: the rater 'gold' is known as automatic, not person" in message


def test_a_rater_is_a_name_and_not_an_account(path: Path, rater_user: object) -> None:
    counts(write_jsonl(path, label(rater="somebody")))
    assert Rater.objects.get().user is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"chat_id": "c9"}, "chat_id: no chat 'c9'"),
        ({"criterion": "kind"}, "criterion: no criterion 'kind'"),
        ({"value": None}, "value: null (not applicable) is not allowed for polite"),
        ({"value": "true"}, "value: must be true, false or null, not 'true'"),
        ({"value": 1}, "value: must be true, false or null, not 1"),
        ({"rater": ""}, "rater: must not be blank"),
        ({"turns": [1, 4]}, "turns[1]: the chat has 3 messages, no number 4"),
        ({"turns": [0]}, "turns[0]: must be a whole number from 1 up, not 0"),
        ({"turns": 2}, "turns: must be a list"),
        ({"evidence": [{"message": 4}]}, "evidence: The chat has no turn 4."),
        ({"evidence": [{"message": 1, "start": 0, "end": 99}]}, "evidence: Turn 1 has no characters 0–99."),
        ({"evidence": [{"message": 1, "start": 3}]}, "evidence: Turn 1 has no characters 3–None."),
        (
            {"evidence": [{"message": 1, "start": 0, "end": 5, "quote": "There"}]},
            "evidence: The quote is not what",
        ),
        ({"evidence": [{"start": 1}]}, "evidence[0].message: is missing"),
        ({"kind": "robot"}, "kind: must be one of person, automatic, demo"),
        ({"post_reveal": "no"}, "post_reveal: must be true or false"),
        ({"version": 0}, "version: must be a whole number from 1 up"),
        ({"created_at": "now"}, "created_at: must be an ISO 8601 time"),
    ],
)
def test_a_wrong_label_names_its_line_and_field(path: Path, line: dict[str, Any], words: str) -> None:
    message = refused("import_labels", write_jsonl(path, label("c2"), label() | line))
    assert f"labels.jsonl line 2, {words}" in message
    assert Label.objects.count() == Rater.objects.count() == Consensus.objects.count() == 0


def test_null_is_an_answer_where_the_criterion_allows_it(path: Path) -> None:
    counts(write_jsonl(path, label(criterion="refunded", value=None)))
    assert consensus() == {("c1", "refunded"): "na"}


def test_unknown_fields_are_counted_on_stderr(path: Path) -> None:
    answer = run("import_labels", write_jsonl(path, label(raw="T"), label("c2", raw="X")))
    assert "ignored field 'raw' on 2 lines" in answer.notes
    assert answer.document == {"created": 2, "unchanged": 0, "updated": 0}


@pytest.mark.heavy
def test_queries_grow_with_chunks_and_not_with_labels(path: Path, django_assert_max_num_queries: Any) -> None:
    chats = [make_chat(f"q{n}") for n in range(50)]
    write_jsonl(path, *(label(chat.external_id, rater=f"r{n}") for chat in chats for n in range(10)))
    with django_assert_max_num_queries(60):  # SQLite takes 999 values a statement
        assert counts(path) == (500, 0, 0)


def test_working_time_is_kept_until_a_line_says_another(path: Path) -> None:
    run("import_labels", write_jsonl(path, label(active_ms=1500)))
    run("import_labels", write_jsonl(path, label(value=False)))
    assert Label.objects.get().active_ms == 1500
    run("import_labels", write_jsonl(path, label(value=True, active_ms=90)))
    assert (Label.objects.get().active_ms, Label.objects.get().revision) == (90, 3)
    for wrong, why in ((-1, "must be a whole number from 0 up"), (2**31, "must be at most 2,147,483,647")):
        assert f"line 1, active_ms: {why}" in refused(
            "import_labels", write_jsonl(path, label(active_ms=wrong))
        )
