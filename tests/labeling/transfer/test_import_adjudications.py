"""import_adjudications: decisions in force, replaced, and what they do to consensus."""

from pathlib import Path
from typing import Any

import pytest

from labeling.models.labels import Adjudication, Consensus
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_rubric
from tests.files import decision, label, refused, run, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def workspace(db: None) -> None:
    make_rubric("polite", "brief")
    make_chat("c1")
    make_chat("c2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "adjudications.jsonl"


def counts(path: Path) -> tuple[int, int, int]:
    document = run("import_adjudications", path).document
    return document["created"], document["unchanged"], document["updated"]


def test_a_decision_is_stored_with_the_labels_and_wins(path: Path, tmp_path: Path) -> None:
    run(
        "import_labels",
        write_jsonl(tmp_path / "labels.jsonl", label(rater="a"), label(rater="b", value=False)),
    )
    assert counts(write_jsonl(path, decision(value=False, created_at="2026-11-01T10:00:00Z"))) == (1, 0, 0)
    stored, consensus = Adjudication.objects.get(), Consensus.objects.get()
    assert (stored.by_name, stored.reason, stored.by, stored.replaced_at) == ("Ines", "m2.", None, None)
    assert stored.created_at.isoformat() == "2026-11-01T10:00:00+00:00"
    assert (consensus.state, consensus.by, consensus.n_true, consensus.n_false) == (
        "false",
        "adjudication",
        1,
        1,
    )
    assert Criterion.objects.get(key="polite").labels_seq == 2


def test_the_same_file_again_changes_nothing(path: Path) -> None:
    write_jsonl(path, decision(), decision("c2"))
    assert counts(path) == (2, 0, 0)
    assert counts(path) == (0, 2, 0)
    assert Criterion.objects.get(key="polite").labels_seq == 1


@pytest.mark.parametrize("change", [{"value": False}, {"reason": "m1."}, {"adjudicated_by": "Otto"}])
def test_a_different_decision_replaces_the_one_in_force(path: Path, change: dict[str, Any]) -> None:
    counts(write_jsonl(path, decision()))
    assert counts(write_jsonl(path, decision(**change))) == (0, 0, 1)
    old, new = Adjudication.objects.order_by("pk")
    assert old.replaced_at is not None
    assert new.replaced_at is None
    assert Consensus.objects.get().state == ("true" if new.value else "false")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"chat_id": "c9"}, "chat_id: no chat 'c9'"),
        ({"criterion": "kind"}, "criterion: no criterion 'kind'"),
        ({"value": None}, "value: null (not applicable) is not allowed for polite"),
        ({"reason": " "}, "reason: must not be blank"),
        ({"adjudicated_by": 5}, "adjudicated_by: must be text"),
        ({"chat_id": "c2"}, "criterion: same chat and criterion as line 1"),
    ],
)
def test_a_wrong_decision_names_its_line_and_field(path: Path, line: dict[str, Any], words: str) -> None:
    message = refused("import_adjudications", write_jsonl(path, decision("c2"), decision() | line))
    assert f"adjudications.jsonl line 2, {words}" in message
    assert Adjudication.objects.count() == Consensus.objects.count() == 0
