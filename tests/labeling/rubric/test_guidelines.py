"""Texts for raters: versions with reasons, who sees a change, and what a label was given under."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from common.problems import FieldProblem
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.judges import judge_ensure
from labeling.models.labels import Assignment, Consensus, Label
from labeling.models.people import AuditEvent, Rater, User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.rating.queries.labels import own_assignment
from labeling.rating.services.answers import label_save
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.queries.guidelines import changes_since, guideline_for, guideline_in_force
from labeling.rubric.services.guidelines import EditConflict, guideline_write
from tests.factories.guidelines import reword, write
from tests.factories.labelling_job import Desk, answer_all, make_desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2)


def own(assignment: Assignment) -> Assignment:
    """As views and API load it."""
    found = own_assignment(assignment_id=assignment.pk, rater_id=assignment.rater_id or 0)
    assert found is not None
    return found


def answer(assignment: Assignment, criterion: Criterion, *, value: bool, version: int | None = None) -> None:
    label_save(
        assignment=assignment,
        rater=Rater.objects.get(pk=assignment.rater_id or 0),
        criterion=criterion,
        value=value,
        client_id=uuid.uuid4(),
        version=version,
    )


# ---------- versions ----------


def test_a_new_text_is_a_new_version_with_its_reason_and_an_audit_event(desk: Desk, lead_user: User) -> None:
    write(desk, "Read the whole chat.", base=0, by=lead_user)
    second = write(desk, "Read the whole chat first.", base=1, by=lead_user)
    assert guideline_in_force(rubric_id=desk.rubric.pk) == second
    assert [(row.number, row.text, row.created_by) for row in desk.rubric.guidelines.all()] == [
        (1, "Read the whole chat.", lead_user),
        (2, "Read the whole chat first.", lead_user),
    ]
    event = AuditEvent.objects.get(object_id=second.pk, object_type="labeling.rubricguideline")
    assert (event.actor, event.verb) == (lead_user, "guideline written")
    assert event.detail == {"rubric": "Test rubric", "number": 2, "reason": "Asked for"}


def test_the_same_text_makes_no_version(desk: Desk) -> None:
    first = write(desk, "Read.", base=0)
    assert write(desk, "Read.", base=0) == write(desk, "Read.", base=1) == first
    unchanged = reword(desk.criteria[0])
    assert unchanged.number == 1
    assert AuditEvent.objects.filter(verb__endswith="written").count() == 1


def test_of_two_who_started_from_the_same_version_the_second_is_refused_and_shown_the_newer_text(
    desk: Desk,
) -> None:
    write(desk, "Mine", base=0)
    with pytest.raises(EditConflict, match="Version 1 was saved first") as refused:
        write(desk, "Yours", base=0)
    assert refused.value.newest is not None
    assert refused.value.newest.number == 1
    reword(desk.criteria[0], guideline="Mine")
    with pytest.raises(EditConflict) as refused:
        reword(desk.criteria[0], guideline="Yours")
    assert isinstance(refused.value.newest, CriterionVersion)
    assert refused.value.newest.guideline == "Mine"
    assert CriterionVersion.objects.filter(criterion=desk.criteria[0]).count() == 2


@pytest.mark.parametrize(("text", "reason", "field"), [(" ", "why", "text"), ("Read.", " ", "reason")])
def test_a_version_needs_a_text_and_a_reason(desk: Desk, text: str, reason: str, field: str) -> None:
    with pytest.raises(FieldProblem, match="is missing") as refused:
        guideline_write(rubric=desk.rubric, text=text, reason=reason, base=0, by=None)
    assert refused.value.field == field
    assert not RubricGuideline.objects.exists()


def test_words_for_raters_change_neither_the_question_nor_the_judge(desk: Desk) -> None:
    choice = JudgeSpec("direct", model="m", formatter="m")
    endpoint = Endpoint(id="http://127.0.0.1:1", base_url="http://127.0.0.1:1", api_key="", embedded=False)
    Criterion.objects.update(labels_seq=1)  # before the first label a generated prompt follows the texts
    before = judge_ensure(choice=choice, criteria=desk.criteria, endpoint=endpoint, by=None)
    told = reword(desk.criteria[1], guideline="Look at **every** answer.", true_example="It said so.")
    old = desk.criteria[1].versions.get(number=1)
    assert told.content_hash == old.content_hash
    assert (told.allow_na, told.passes_when) == (old.allow_na, old.passes_when) == (True, True)
    assert judge_ensure(choice=choice, criteria=desk.criteria, endpoint=endpoint, by=None) == before
    asked = reword(desk.criteria[1], base=2, definition="True only when all of it is.")
    assert asked.content_hash != old.content_hash
    assert judge_ensure(choice=choice, criteria=desk.criteria, endpoint=endpoint, by=None) != before


# ---------- what a rater is told ----------


def test_a_rater_gets_the_newest_texts(desk: Desk) -> None:
    assignment = own(desk.taken())
    assert guideline_for(assignment=assignment).number == 0
    write(desk, "Read.", base=0)
    reword(desk.criteria[0], guideline="Look.", true_example="“Thank you!”", false_example="“No.”")
    told = guideline_for(assignment=assignment)
    assert (told.number, told.text, told.rubric) == (1, "Read.", "Test rubric")
    polite = told.criteria["polite"]
    assert (polite.number, polite.guideline, polite.true_example, polite.false_example) == (
        2,
        "Look.",
        "“Thank you!”",
        "“No.”",
    )
    assert told.criteria["correct"].number == 1


def test_a_change_in_the_middle_of_a_chat_is_shown_with_old_and_new_number(desk: Desk) -> None:
    write(desk, "Read.", base=0)
    assignment = own(desk.taken())
    assert changes_since(assignment=assignment) == ()
    write(desk, "Read all.", base=1)
    reword(desk.criteria[1], guideline="Look.")
    assert [
        (change.criterion, change.old, change.new) for change in changes_since(assignment=assignment)
    ] == [
        ("", 1, 2),
        ("correct", 1, 2),
    ]


def test_a_change_between_two_chats_is_shown_only_on_the_first_one_it_applies_to(desk: Desk) -> None:
    answer_all(first := desk.taken())
    assignment_submit(assignment=first, rater=desk.rater)
    write(desk, "Read.", base=0)
    second = desk.taken()
    assert [change.new for change in changes_since(assignment=own(second))] == [1]
    answer_all(second)
    assignment_submit(assignment=second, rater=desk.rater)
    assert changes_since(assignment=own(desk.taken())) == ()
    assert [change.new for change in changes_since(assignment=own(first))] == [1]


def test_a_new_rater_sees_no_change(desk: Desk) -> None:
    write(desk, "Read.", base=0)
    write(desk, "Read all.", base=1)
    assert changes_since(assignment=own(desk.taken())) == ()


def test_what_raters_do_not_read_is_no_news_to_them(desk: Desk) -> None:
    write(desk, "Read.", base=0)
    assignment = own(desk.taken())
    write(desk, "Read all.", base=1)
    write(desk, "Read.", base=2)
    newest = desk.criteria[0].versions.latest("number")
    newest.pk, newest.number, newest.passes_when = None, 2, False
    newest.save(force_insert=True)
    assert changes_since(assignment=assignment) == ()


def submitted(desk: Desk, *, guideline: int | None = None) -> Assignment:
    """The rater's next chat, done with this guideline before them."""
    answer_all(assignment := desk.taken())
    return assignment_submit(assignment=assignment, rater=desk.rater, guideline=guideline)


def test_a_guideline_written_while_a_chat_is_open_is_shown_on_the_next_chat_and_not_stamped_on_this_one(
    desk: Desk,
) -> None:
    write(desk, "Read.", base=0)
    submitted(desk)
    answer_all(assignment := desk.taken())
    write(desk, "Read all.", base=1)
    done = assignment_submit(assignment=assignment, rater=desk.rater, guideline=1)
    assert done.guideline is not None
    assert done.guideline.number == 1
    found = changes_since(assignment=own(desk.taken()))
    assert [(change.name, change.old, change.new) for change in found] == [("Guideline", 1, 2)]


def test_a_criterion_reworded_while_a_chat_is_open_is_shown_on_the_next_chat(desk: Desk) -> None:
    assignment = desk.taken()
    for criterion in desk.criteria:
        answer(assignment, criterion, value=True, version=1)
    reword(desk.criteria[0], definition="Another one.")
    assignment_submit(assignment=assignment, rater=desk.rater)
    found = changes_since(assignment=own(desk.taken()))
    assert [(change.criterion, change.old, change.new) for change in found] == [("polite", 1, 2)]


def test_a_criterion_that_the_rater_never_labelled_is_news_from_when_they_took_the_chat(desk: Desk) -> None:
    desk.job.criteria.remove(desk.criteria[1])
    submitted(desk)
    desk.job.criteria.add(desk.criteria[1])
    reword(desk.criteria[1], guideline="Before.")
    assignment = own(desk.taken())
    assert changes_since(assignment=assignment) == ()
    reword(desk.criteria[1], base=2, guideline="After.")
    assert [(change.criterion, change.old) for change in changes_since(assignment=assignment)] == [
        ("correct", 2)
    ]


@pytest.mark.parametrize(("said", "kept"), [(None, 2), (0, None), (1, 1), (2, 2)])
def test_a_submitted_chat_keeps_the_guideline_that_was_read_by_default_the_newest(
    desk: Desk, said: int | None, kept: int | None
) -> None:
    write(desk, "Read.", base=0)
    write(desk, "Read all.", base=1)
    row = submitted(desk, guideline=said)
    assert (row.guideline.number if row.guideline else None) == kept


def test_a_guideline_that_the_rubric_has_not_got_is_refused(desk: Desk) -> None:
    answer_all(assignment := desk.taken())
    with pytest.raises(FieldProblem, match="no guideline version 7") as refused:
        assignment_submit(assignment=assignment, rater=desk.rater, guideline=7)
    assert refused.value.field == "guideline"
    assert not Label.objects.filter(state="submitted").exists()


@pytest.mark.heavy
def test_changes_take_the_same_number_of_queries_with_many_versions(desk: Desk) -> None:
    submitted(desk)
    taken, counts = desk.taken(), []
    for versions in (range(2), range(2, 30)):
        for number in versions:
            write(desk, f"Text {number}", base=number)
            reword(desk.criteria[0], base=number + 1, guideline=f"Text {number}")
        assignment = own(taken)
        with CaptureQueriesContext(connection) as queries:
            guideline_for(assignment=assignment)
            changes_since(assignment=assignment)
        counts.append(len(queries))
    assert counts[0] == counts[1]


# ---------- what answers are bound to (R23) ----------


def test_an_answer_stays_bound_to_the_text_its_rater_read(desk: Desk) -> None:
    assignment = desk.taken()
    polite, correct = desk.criteria
    answer(assignment, polite, value=True, version=1)
    reword(polite, question="Was it always polite?")
    answer(assignment, correct, value=True)
    assignment_submit(assignment=assignment, rater=desk.rater)
    assert Label.objects.get(criterion=polite).version.number == 1
    answer(assignment, polite, value=False, version=2)
    label = Label.objects.get(criterion=polite)
    assert (label.version.number, label.value, label.state) == (2, False, "submitted")


def both_answer(desk: Desk, *, then: CriterionVersion) -> Consensus:
    """Two raters differ about a chat's first criterion, the second one with the newest text before them."""
    polite = desk.criteria[0]
    for rater, value, version in zip(desk.raters, (True, False), (1, then.number), strict=True):
        assignment = desk.taken(rater)
        answer(assignment, polite, value=value, version=version)
        answer(assignment, desk.criteria[1], value=True)
        assignment_submit(assignment=assignment, rater=rater)
    return Consensus.objects.get(criterion=polite)


def test_labels_given_to_different_questions_are_not_counted_together(desk: Desk) -> None:
    found = both_answer(desk, then=reword(desk.criteria[0], definition="Another one."))
    assert (found.state, found.n_true, found.n_false) == ("false", 0, 1)
    counted = Label.objects.counted().filter(criterion=desk.criteria[0])
    assert [label.rater for label in counted] == [desk.raters[1]]


def test_labels_of_the_same_question_count_together_under_any_guideline(desk: Desk) -> None:
    found = both_answer(desk, then=reword(desk.criteria[0], guideline="More about it."))
    assert (found.state, found.n_true, found.n_false) == ("unresolved", 1, 1)
    assert Label.objects.counted().filter(criterion=desk.criteria[0]).count() == 2


def test_a_question_that_came_back_counts_with_itself(desk: Desk) -> None:
    polite = desk.criteria[0]
    definition = polite.versions.get().definition
    reword(polite, definition="Another one.")
    found = both_answer(desk, then=reword(polite, base=2, definition=definition))
    assert (found.state, found.n_true, found.n_false) == ("unresolved", 1, 1)


def test_a_label_counts_until_somebody_answers_the_newer_question_on_that_chat(desk: Desk) -> None:
    assignment = desk.taken()
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)
    reword(desk.criteria[0], definition="Another one.")
    assert Label.objects.counted().count() == 2
