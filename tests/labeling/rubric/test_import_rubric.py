"""import_rubric: creates and extends; changed texts are new versions, answers keep their meaning."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from evaluation.knowledge.services import criterion_articles_set
from evaluation.models.prompts import CriterionArticle, KnowledgeArticle, PromptVersion
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.rubric.services.rubric import rubric_import
from tests.factories.rows import make_chat
from tests.files import criterion, decision, label, refused, rubric, run, write_json, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rubric.json"


def counts(path: Path, *criteria: dict[str, Any], **fields: Any) -> tuple[int, int, int]:
    document = run("import_rubric", write_json(path, rubric(*criteria) | fields)).document
    return document["created"], document["unchanged"], document["updated"]


def row(key: str = "polite") -> Criterion:
    return Criterion.objects.select_related("dimension").get(key=key)


def test_a_criterion_gets_the_defaults_of_the_format(path: Path) -> None:
    assert counts(path, criterion()) == (1, 0, 0)
    found, version = row(), CriterionVersion.objects.get()
    assert (found.tier, found.critical, found.state, found.articles) == ("simple", False, "active", "listed")
    assert (version.number, version.passes_when, version.allow_na) == (1, True, False)
    assert version.reason == "Imported from rubric.json"
    assert found.dimension.name == "Compliance"


def test_the_same_file_again_changes_nothing(path: Path) -> None:
    counts(path, criterion(), criterion("brief", tier="context"))
    assert counts(path, criterion(), criterion("brief", tier="context")) == (0, 2, 0)
    assert CriterionVersion.objects.count() == 2


def test_words_for_raters_come_with_the_file_and_stay_if_a_later_file_has_none(path: Path) -> None:
    words = {"guideline": "Look *twice*.", "true_example": "“Thanks!”", "false_example": "“No.”"}
    assert counts(path, criterion(**words)) == (1, 0, 0)
    assert counts(path, criterion()) == (0, 1, 0)
    assert counts(path, criterion(question="New?", false_example="“Go away.”")) == (0, 0, 1)
    newest = CriterionVersion.objects.latest("number")
    assert (newest.number, newest.guideline, newest.true_example, newest.false_example) == (
        2,
        "Look *twice*.",
        "“Thanks!”",
        "“Go away.”",
    )
    assert "criteria[0].guideline" in refused(
        "import_rubric", write_json(path, rubric(criterion(guideline=1)))
    )


@pytest.mark.parametrize(
    "change", [{"question": "New?"}, {"definition": "New."}, {"allow_na": True}, {"passes_when": False}]
)
def test_a_changed_text_or_rule_is_a_new_version(path: Path, change: dict[str, Any]) -> None:
    counts(path, criterion())
    assert counts(path, criterion(**change)) == (0, 0, 1)
    old, new = CriterionVersion.objects.order_by("number")
    assert (old.number, new.number) == (1, 2)
    assert old.content_hash != new.content_hash
    assert counts(path, criterion(**change)) == (0, 1, 0)


@pytest.mark.parametrize(
    "change", [{"tier": "subjective"}, {"critical": True}, {"state": "retired"}, {"evidence_on_fail": True}]
)
def test_what_is_no_text_changes_in_place(path: Path, change: dict[str, Any]) -> None:
    counts(path, criterion())
    assert counts(path, criterion(**change)) == (0, 0, 1)
    for name, value in change.items():
        assert getattr(row(), name) == value
    assert CriterionVersion.objects.count() == 1


def test_a_file_without_state_and_evidence_rule_leaves_them_as_they_are(path: Path) -> None:
    counts(path, criterion(state="retired", evidence_on_fail=True))
    assert counts(path, criterion()) == (0, 1, 0)
    assert (row().state, row().evidence_on_fail) == ("retired", True)


@pytest.mark.parametrize("given", ["label", "adjudication"])
def test_the_passing_answer_cannot_change_once_there_are_labels(
    path: Path, tmp_path: Path, given: str
) -> None:
    counts(path, criterion())
    make_chat("c1")
    if given == "label":
        run("import_labels", write_jsonl(tmp_path / "l.jsonl", label()))
    else:
        run("import_adjudications", write_jsonl(tmp_path / "a.jsonl", decision()))
    message = refused(
        "import_rubric", write_json(path, rubric(criterion("brief"), criterion(passes_when=False)))
    )
    assert "criteria[1].passes_when: cannot change: polite has labels" in message
    assert not Criterion.objects.filter(key="brief").exists()
    assert counts(path, criterion(question="New?")) == (0, 0, 1)


def test_a_second_file_extends_the_rubric_and_leaves_the_rest(path: Path) -> None:
    counts(path, criterion(), criterion("brief"))
    assert counts(path, criterion("kind")) == (1, 0, 0)
    assert list(Rubric.objects.get().criteria.values_list("key", "position")) == [
        ("polite", 0),
        ("brief", 1),
        ("kind", 2),
    ]


def test_dimensions_belong_to_the_workspace_and_take_a_new_name(path: Path) -> None:
    counts(path, criterion())
    counts(path, criterion(), dimensions=[{"key": "compliance", "name": "Rules"}])
    assert list(Dimension.objects.values_list("key", "name")) == [("compliance", "Rules")]


def test_a_key_belongs_to_one_rubric(path: Path) -> None:
    counts(path, criterion())
    message = refused("import_rubric", write_json(path, rubric(criterion(), name="Other")))
    assert "criteria[0].key: 'polite' belongs to the rubric 'Support'" in message
    assert Rubric.objects.count() == 1


def listed(key: str) -> list[str]:
    rows = CriterionArticle.objects.filter(criterion__key=key).order_by("article__key")
    return list(rows.values_list("article__key", flat=True))


def test_knowledge_is_every_article_for_context_unless_listed(path: Path) -> None:
    for key in ("cards", "refunds"):
        KnowledgeArticle.objects.create(key=key)
    counts(
        path,
        criterion("all", tier="context"),
        criterion("none", tier="context", knowledge=[]),
        criterion("one", tier="context", knowledge=["refunds"]),
        criterion("simple", knowledge=["refunds", "cards"]),
    )
    assert dict(Criterion.objects.values_list("key", "articles")) == {
        "all": "all",
        "none": "listed",
        "one": "listed",
        "simple": "listed",
    }
    assert (listed("all"), listed("none"), listed("one")) == ([], [], ["refunds"])
    assert listed("simple") == ["cards", "refunds"]
    assert counts(path, criterion("one", tier="context", knowledge=["cards"])) == (0, 0, 1)
    assert listed("one") == ["cards"]


def test_an_unknown_article_is_refused(path: Path) -> None:
    message = refused("import_rubric", write_json(path, rubric(criterion(knowledge=["absent"]))))
    assert "criteria[0].knowledge[0]: no article 'absent'" in message
    assert Rubric.objects.count() == 0


def test_the_shipped_rubric_is_taken_whole() -> None:
    path = Path(settings.BASE_DIR) / "labeling" / "rubric" / "default_rubric.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    answer = run("import_rubric", path)
    assert answer.document["created"] == len(document["criteria"])
    assert answer.notes == ""


def test_a_default_criterion_joins_a_rubric_of_ones_own_with_its_shipped_prompt(path: Path) -> None:
    counts(path, criterion())
    shipped = Path(settings.BASE_DIR) / "labeling" / "rubric" / "default_rubric.json"
    document = json.loads(shipped.read_text(encoding="utf-8")) | {"name": "Support"}
    for field, key in (("dimensions", "chat_efficiency"), ("criteria", "caused_needless_turns")):
        document[field] = [row for row in document[field] if row["key"] == key]
    assert run("import_rubric", write_json(path, document)).document["created"] == 1
    assert row().versions.count() == 1
    added = row("caused_needless_turns")
    assert added.rubric == row().rubric
    assert champions_ensure(criteria=[added], by=None)[added.pk].origin == PromptVersion.Origin.SHIPPED


def test_only_new_leaves_criteria_as_they_are_and_adds_the_others(path: Path) -> None:
    counts(path, criterion())
    write_json(path, rubric(criterion(definition="Other."), criterion("brief")))
    result = rubric_import(path=path, articles_set=criterion_articles_set, only_new=True)
    assert (result.created, result.unchanged, result.updated) == (1, 1, 0)
    assert row().versions.count() == row("brief").versions.count() == 1


def test_unknown_fields_are_counted_on_stderr(path: Path) -> None:
    document = rubric(criterion(weight=2)) | {"version": 3}
    notes = run("import_rubric", write_json(path, document)).notes
    assert "ignored field 'criteria[].weight' on 1 line" in notes
    assert "ignored field 'version' on 1 line" in notes
