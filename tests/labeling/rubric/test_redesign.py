"""Redesigning criteria: what ends, what takes its place, what carries over, and what never changes."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from common.problems import FieldProblem
from labeling.models.labels import Label, LabelRevision
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion, CriterionLineage, Dimension
from labeling.rating.queries.labels import answers_of
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.core.redesign import Redesign
from labeling.rubric.queries.criteria import criteria_of
from labeling.rubric.queries.lineage import lineage_of, retired_criteria
from labeling.rubric.services.redesign import criteria_redesign, criterion_bring_back
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.factories.redesigns import KEYS, MERGE, SPLIT, carried_out, criterion, redesign, successor
from tests.factories.rows import make_criterion, make_rubric
from tests.files import run, write_json

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2, keys=KEYS)


def order() -> list[str]:
    active = Criterion.objects.filter(state="active").order_by("position")
    return list(active.values_list("key", flat=True))


# ---------- retiring and bringing back ----------


def test_a_retired_criterion_keeps_labels_drafts_and_jobs_and_is_asked_no_more(
    desk: Desk, lead_user: User
) -> None:
    answer_all(done := desk.taken())
    assignment_submit(assignment=done, rater=desk.rater)
    answer_all(open_one := desk.taken())
    before = Label.objects.count(), LabelRevision.objects.count()
    criteria_redesign(redesign=redesign("retire", "polite"), reason=" Nobody needs it ", by=lead_user)
    assert criterion("polite").state == "retired"
    assert (Label.objects.count(), LabelRevision.objects.count()) == before
    assert [row.key for row in criteria_of(desk.job)] == ["brief", "correct"]
    assert desk.job.criteria.filter(key="polite").exists()
    assignment_submit(assignment=open_one, rater=desk.rater)
    assert Label.objects.get(chat=open_one.chat, criterion__key="polite").state == "draft"
    event = AuditEvent.objects.get(verb="criterion retired")
    assert (event.actor, event.detail) == (lead_user, {"criterion": "polite", "reason": "Nobody needs it"})


def test_brought_back_it_is_asked_again_with_its_drafts(desk: Desk, lead_user: User) -> None:
    answer_all(mine := desk.taken())
    carried_out(redesign("retire", "polite"))
    criterion_bring_back(criterion=criterion("polite"), reason="After all", by=lead_user)
    asked = criteria_of(desk.job)
    assert [row.key for row in asked] == list(KEYS)
    assert answers_of(assignment=mine, criteria=asked).keys() == set(KEYS)
    assert AuditEvent.objects.get(verb="criterion reactivated").actor == lead_user


def test_what_is_active_cannot_be_brought_back_nor_anything_without_a_reason(desk: Desk) -> None:
    with pytest.raises(FieldProblem, match="polite is not retired"):
        criterion_bring_back(criterion=criterion("polite"), reason="Why", by=None)
    with pytest.raises(FieldProblem, match="reason: is missing"):
        criterion_bring_back(criterion=criterion("polite"), reason=" ", by=None)


# ---------- what takes its place ----------


def test_a_split_puts_the_new_criteria_at_the_place_of_the_old_one(desk: Desk, lead_user: User) -> None:
    wanted = redesign("split", "brief", into=(successor("short"), successor("plain", tier="subjective")))
    done = criteria_redesign(redesign=wanted, reason="Two questions in one", by=lead_user)
    assert [row.key for row in done.new] == ["short", "plain"]
    assert order() == ["polite", "short", "plain", "correct"]
    plain = criterion("plain")
    version = plain.versions.get()
    assert (plain.rubric, plain.tier, version.number) == (desk.rubric, "subjective", 1)
    assert (version.question, version.reason) == ("Is plain so?", "Two questions in one")
    assert version.created_by == lead_user
    rows = CriterionLineage.objects.values_list("old__key", "new__key", "kind", "carries_labels", "reason")
    assert set(rows) == {("brief", new, "split", False, "Two questions in one") for new in ("short", "plain")}


def test_a_merge_ends_all_and_takes_the_place_of_the_first(desk: Desk) -> None:
    carried_out(redesign("merge", "correct", "polite", into=(successor("fine"),)))
    assert order() == ["fine", "brief"]
    assert CriterionLineage.objects.filter(new__key="fine", kind="merge").count() == 2
    events = AuditEvent.objects.filter(verb="criterion merged").order_by("pk")
    assert [event.detail["criterion"] for event in events] == ["polite", "correct"]
    assert [event.detail["into"] for event in events] == [["fine"], ["fine"]]


def test_a_replacement_may_ask_with_the_other_polarity(desk: Desk) -> None:
    carried_out(redesign("replace", "polite", into=(successor("rude", passes_when=False, critical=True),)))
    assert AuditEvent.objects.get(verb="criterion replaced").detail["into"] == ["rude"]
    assert criterion("rude").critical
    assert not criterion("rude").versions.get().passes_when
    assert order() == ["rude", "brief", "correct"]


@pytest.mark.parametrize(
    ("tier", "before", "reads"),
    [("simple", "listed", "listed"), ("simple", "all", "all"), ("context", "listed", "all")],
)
def test_the_new_one_reads_every_article_where_the_old_one_did_or_its_tier_asks_for_it(
    desk: Desk, tier: str, before: str, reads: str
) -> None:
    Criterion.objects.filter(key="polite").update(articles=before)
    carried_out(redesign("replace", "polite", into=(successor("kind", tier=tier),)))
    assert criterion("kind").articles == reads


def test_no_labelling_job_is_given_a_new_criterion(desk: Desk) -> None:
    carried_out(SPLIT)
    assert set(desk.job.criteria.values_list("key", flat=True)) == set(KEYS)
    assert [row.key for row in criteria_of(desk.job)] == ["brief", "correct"]


# ---------- what is refused ----------

REFUSED: dict[str, tuple[Redesign, str]] = {
    "a split into one": (
        redesign("split", "polite", into=(successor("a"),)),
        "into: a split takes 2 to 10 new questions, not 1",
    ),
    "a merge of one": (
        redesign("merge", "polite", "polite", into=(successor("a"),)),
        "others: a merge takes 2 to 10 criteria, not 1",
    ),
    "a retirement into something": (
        redesign("retire", "polite", into=(successor("a"),)),
        "into: a retire takes 0 new questions, not 1",
    ),
    "the same key twice": (
        redesign("split", "polite", into=(successor("a"), successor("a"))),
        "into[1].key: 'a' appears twice",
    ),
    "a key that is taken": (
        redesign("split", "polite", into=(successor("a"), successor("brief"))),
        "into[1].key: 'brief' is already in use",
    ),
    "its own key": (
        redesign("replace", "polite", into=(successor("polite"),)),
        "into[0].key: 'polite' is already in use",
    ),
    "what there is not": (redesign("retire", "posh"), "others: no criterion 'posh'"),
    "labels of another": (
        redesign("replace", "polite", into=(successor("a", "brief"),)),
        "into[0].carries: 'brief' is not retired by this redesign",
    ),
    "the same labels for two questions": (
        redesign("split", "polite", into=(successor("a", "polite"), successor("b", "polite"))),
        "into[1].carries: labels of polite already carry over to a: two questions with the same answers are "
        "one question",
    ),
    "labels without the lead's word": (
        redesign("replace", "polite", into=(successor("a", "polite"),), same=False),
        "same_answers: labels carry over only where True and False mean the same in both questions: "
        "confirm this",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_at_its_field_and_nothing_is_written(desk: Desk, name: str) -> None:
    wanted, message = REFUSED[name]
    with pytest.raises(FieldProblem) as caught:
        carried_out(wanted)
    assert str(caught.value) == message
    assert set(order()) == set(KEYS)
    assert not CriterionLineage.objects.exists()


def test_a_dimension_that_there_is_not_is_refused(desk: Desk) -> None:
    wanted = redesign("replace", "polite", into=(successor("a", dimension="answer_correctness"),))
    Dimension.objects.filter(key="answer_correctness").update(key="correctness")
    with pytest.raises(FieldProblem, match=r"into\[0\].dimension: no dimension 'answer_correctness'"):
        carried_out(wanted)


def test_a_second_redesign_of_the_same_criterion_is_refused(desk: Desk) -> None:
    carried_out(SPLIT)
    with pytest.raises(FieldProblem, match="others: polite is already retired"):
        carried_out(redesign("retire", "polite"))


def test_criteria_of_two_rubrics_do_not_merge(desk: Desk) -> None:
    make_rubric("other", name="Another")
    with pytest.raises(FieldProblem, match="belongs to another rubric"):
        carried_out(redesign("merge", "polite", "other", into=(successor("a"),)))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 10_001])
def test_a_reason_is_needed_and_has_an_end(desk: Desk, reason: str) -> None:
    with pytest.raises(FieldProblem, match=r"^reason"):
        carried_out(SPLIT, reason=reason)


# ---------- reading it ----------


def test_lineage_shows_successors_and_predecessors(desk: Desk, lead_user: User) -> None:
    criteria_redesign(redesign=MERGE, reason="Always the same answer", by=lead_user)
    old, new = lineage_of(criterion("polite")), lineage_of(criterion("kind"))
    assert (old.made_of, new.became, new.retired) == (None, (), None)
    assert new.made_of is not None
    assert old.became == (new.made_of,)
    step = new.made_of
    assert [(row.criterion.key, row.labels_carried) for row in step.olds] == [
        ("polite", True),
        ("brief", True),
    ]
    assert ([row.key for row in step.new], step.kind, step.by) == (["kind"], "merge", lead_user)
    assert old.retired is not None
    assert (old.retired.reason, old.retired.by) == ("Always the same answer", lead_user)


def test_a_criterion_split_twice_shows_both_splits(desk: Desk) -> None:
    carried_out(SPLIT)
    criterion_bring_back(criterion=criterion("polite"), reason="Too early", by=None)
    assert lineage_of(criterion("polite")).retired is None
    carried_out(redesign("split", "polite", into=(successor("warm"), successor("calm"))))
    steps = lineage_of(criterion("polite")).became
    assert [[row.key for row in step.new] for step in steps] == [["greets", "thanks"], ["warm", "calm"]]


def test_a_criterion_that_nobody_redesigned_has_no_lineage(desk: Desk) -> None:
    found = lineage_of(criterion("polite"))
    assert (found.told, found.history) == (False, ())


def happened(key: str) -> list[tuple[str, str, str | None]]:
    rows = lineage_of(criterion(key)).history
    return [(row.kind, row.reason, getattr(row.by, "username", None)) for row in rows]


def test_retiring_and_bringing_back_stay_in_the_history_with_who_and_why(desk: Desk, lead_user: User) -> None:
    criteria_redesign(redesign=redesign("retire", "polite"), reason="Unused", by=lead_user)
    assert lineage_of(criterion("polite")).ending == lineage_of(criterion("polite")).history[0]
    criterion_bring_back(criterion=criterion("polite"), reason="After all", by=lead_user)
    back = ("bring_back", "After all", "ines"), ("retire", "Unused", "ines")
    assert happened("polite") == list(back)
    assert lineage_of(criterion("polite")).ending is None
    carried_out(MERGE, reason="Same")
    assert happened("polite") == [("merge", "Same", None), *back]
    newest = lineage_of(criterion("polite")).history[0]
    assert (newest.other_keys, newest.new_keys) == (["brief"], ["kind"])
    assert lineage_of(criterion("polite")).ending == newest
    assert happened("kind") == [("made", "Same", None)]
    (made,) = lineage_of(criterion("kind")).history
    assert (made.other_keys, made.new_keys) == (["polite", "brief"], [])


def test_lineage_and_history_take_three_queries(desk: Desk) -> None:
    carried_out(SPLIT)
    criterion_bring_back(criterion=criterion("polite"), reason="Too early", by=None)
    row = criterion("polite")
    with CaptureQueriesContext(connection) as queries:
        lineage_of(row)
    assert len(queries) <= 3


def test_what_a_rubric_file_retires_is_in_the_history(desk: Desk, tmp_path: Path) -> None:
    for state in ("retired", "active"):
        run("import_rubric", write_json(tmp_path / "rubric.json", rubric_file(state=state)))
    reason = "Imported from rubric.json"
    assert happened("polite") == [("bring_back", reason, None), ("retire", reason, None)]
    of_criteria = AuditEvent.objects.filter(object_type="labeling.criterion")
    before = of_criteria.count()
    run("import_rubric", write_json(tmp_path / "rubric.json", rubric_file(state="active")))
    assert of_criteria.count() == before


def test_retired_ones_are_listed_with_what_took_their_place(desk: Desk) -> None:
    carried_out(SPLIT)
    Criterion.objects.filter(key="brief").update(state="retired")
    with CaptureQueriesContext(connection) as queries:
        first, second = retired_criteria()
    assert len(queries) == 4
    assert (first.criterion.key, [row.key for row in first.became]) == ("polite", ["greets", "thanks"])
    assert first.version.question == "Is polite so?"
    assert first.retired is not None
    assert first.retired.reason == "Raters asked"
    assert (second.criterion.key, second.became, second.retired) == ("brief", (), None)


def rubric_file(**fields: str) -> dict[str, Any]:
    """The rubric's file with one criterion."""
    asked = {"key": "polite", "dimension": "compliance", "tier": "simple"}
    texts = {"question": "Is polite so?", "definition": "True when polite."}
    file = {"name": "Test rubric", "dimensions": [{"key": "compliance", "name": "Compliance"}]}
    return file | {"criteria": [asked | texts | fields]}


def test_the_rubrics_own_file_leaves_a_redesign_as_it_is(desk: Desk, tmp_path: Path) -> None:
    path = write_json(tmp_path / "rubric.json", rubric_file())
    carried_out(SPLIT)
    assert run("import_rubric", path).document["unchanged"] == 1
    assert order() == ["greets", "thanks", "brief", "correct"]
    make_criterion("later", rubric=desk.rubric)
    assert criterion("polite").versions.count() == 1
