"""Taking chats and answering: leases, overlap, idempotent saves, submitting, skipping."""

import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from common.problems import FieldProblem
from labeling.models.labels import Assignment, Consensus, Label, LabelRevision
from labeling.models.rubric import CriterionVersion
from labeling.rating.queries.labels import answers_of
from labeling.rating.services import leases
from labeling.rating.services.answers import label_clear, label_save
from labeling.rating.services.leases import Conflict, assignment_next, assignment_skip
from labeling.rating.services.submission import Unanswered, assignment_submit
from tests.factories.api_calls import at_once
from tests.factories.labelling_job import Desk, answer_all, expire, make_desk


def save(desk: Desk, assignment: Assignment, value: bool | None = True, **given: object) -> None:
    label_save(
        assignment=assignment,
        rater=desk.rater,
        criterion=desk.criteria[0],
        value=value,
        **({"client_id": uuid.uuid4()} | given),  # type: ignore[arg-type]
    )


# ---------- taking ----------


@pytest.mark.django_db
def test_the_next_chat_is_the_one_in_work_until_it_is_submitted() -> None:
    desk = make_desk()
    first = desk.taken()
    assert desk.taken().pk == first.pk
    answer_all(first)
    assignment_submit(assignment=first, rater=desk.rater)
    assert desk.taken().chat_id == desk.chats[1].pk


@pytest.mark.django_db
def test_a_lease_lasts_an_hour_and_every_answer_renews_it() -> None:
    desk = make_desk()
    assignment = desk.taken()
    assert assignment.lease_expires_at is not None
    assert timedelta(minutes=59) < assignment.lease_expires_at - timezone.now() <= timedelta(minutes=60)
    Assignment.objects.filter(pk=assignment.pk).update(lease_expires_at=timezone.now() + timedelta(minutes=2))
    save(desk, assignment)
    assignment.refresh_from_db()
    assert assignment.lease_expires_at > timezone.now() + timedelta(minutes=59)


@pytest.mark.django_db
def test_a_rater_gets_each_chat_once_however_many_labels_it_wants() -> None:
    desk = make_desk(chats=2, raters=3, overlap=3)
    seen = []
    while assignment := assignment_next(rater=desk.rater, job=desk.job):
        seen.append(assignment.chat_id)
        answer_all(assignment)
        assignment_submit(assignment=assignment, rater=desk.rater)
    assert seen == [chat.pk for chat in desk.chats]


@pytest.mark.django_db
def test_a_closed_job_and_a_job_of_others_give_nothing() -> None:
    desk = make_desk()
    stranger = desk.raters[1]
    desk.job.raters.remove(stranger)
    assert assignment_next(rater=stranger, job=desk.job) is None
    desk.job.state = "closed"
    desk.job.save()
    assert assignment_next(rater=desk.rater, job=desk.job) is None


@pytest.mark.django_db
def test_an_expired_lease_goes_to_another_rater_and_the_drafts_of_the_first_stay() -> None:
    desk = make_desk(chats=1)
    mine = desk.taken()
    save(desk, mine)
    expire(mine)
    theirs = desk.taken(desk.raters[1])
    assert (theirs.chat_id, theirs.slot) == (mine.chat_id, mine.slot)
    assert theirs.pk != mine.pk
    with pytest.raises(Conflict) as lost:
        save(desk, mine, value=False)
    assert lost.value.code == "lease_lost"
    assert Label.objects.get(rater=desk.rater).value is True
    mine.refresh_from_db()
    assert answers_of(assignment=mine, criteria=desk.criteria)["polite"].value is True


@pytest.mark.django_db
def test_a_slot_that_another_rater_took_since_it_was_read_is_not_renewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = make_desk(chats=1)
    expire(desk.taken())
    as_read = Assignment.objects.get()
    desk.taken(desk.raters[1])
    monkeypatch.setattr(leases, "_leased", lambda job, rater: [as_read] if rater == desk.rater.pk else [])
    assert assignment_next(rater=desk.rater, job=desk.job) is None


@pytest.mark.django_db
def test_an_expired_lease_that_nobody_took_is_still_the_raters() -> None:
    desk = make_desk(chats=1)
    mine = desk.taken()
    expire(mine)
    save(desk, mine)
    assert desk.taken().pk == mine.pk


@pytest.mark.django_db
def test_a_rater_who_lost_a_chat_gets_it_again_when_its_slot_opens() -> None:
    desk = make_desk(chats=1)
    mine = desk.taken()
    save(desk, mine, value=False)
    expire(mine)
    theirs = desk.taken(desk.raters[1])
    assert assignment_next(rater=desk.rater, job=desk.job) is None
    assignment_skip(assignment=theirs, rater=desk.raters[1], reason="too_long")
    again = desk.taken()
    assert again.chat_id == mine.chat_id
    assert answers_of(assignment=again, criteria=desk.criteria)["polite"].value is False


# ---------- answering ----------


@pytest.mark.django_db
def test_the_same_client_id_again_changes_nothing() -> None:
    desk = make_desk()
    assignment, client_id = desk.taken(), uuid.uuid4()
    save(desk, assignment, client_id=client_id, active_ms=500)
    save(desk, assignment, value=False)
    save(desk, assignment, client_id=client_id, active_ms=500)
    label = Label.objects.get()
    assert (label.value, label.revision, LabelRevision.objects.count()) == (False, 2, 2)
    assignment.refresh_from_db()
    assert assignment.active_ms == 500


@pytest.mark.django_db
def test_a_client_id_cannot_carry_two_different_answers() -> None:
    desk = make_desk()
    assignment, client_id = desk.taken(), uuid.uuid4()
    save(desk, assignment, client_id=client_id)
    with pytest.raises(Conflict, match="client_id"):
        save(desk, assignment, value=False, client_id=client_id)


@pytest.mark.django_db
def test_a_drafts_history_holds_every_answer_and_the_clearing() -> None:
    desk = make_desk()
    assignment = desk.taken()
    save(desk, assignment)
    save(desk, assignment, value=False, rationale="rude in turn 2", turns=[2, 2])
    label_clear(assignment=assignment, rater=desk.rater, criterion=desk.criteria[0])
    label_clear(assignment=assignment, rater=desk.rater, criterion=desk.criteria[0])
    history = LabelRevision.objects.order_by("number").values_list("value", "rationale", "evidence", "state")
    assert list(history) == [
        (True, "", [], "draft"),
        (False, "rude in turn 2", [{"n": 2}], "draft"),
        (None, "", [], "cleared"),
    ]
    assert answers_of(assignment=assignment, criteria=desk.criteria) == {}


@pytest.mark.django_db
def test_not_applicable_is_refused_where_the_criterion_always_applies() -> None:
    desk = make_desk()
    with pytest.raises(FieldProblem) as refused:
        save(desk, desk.taken(), value=None)
    assert refused.value.field == "value"
    assert not Label.objects.exists()


@pytest.mark.django_db
def test_evidence_must_point_into_the_chat() -> None:
    desk = make_desk()
    assignment = desk.taken()
    content = assignment.chat.messages[0]["content"]
    for wrong in (
        {"turns": [3]},
        {"evidence": [{"message": 1, "start": 0, "end": len(content) + 1}]},
        {"evidence": [{"message": 1, "start": 4, "end": 4}]},
        {"evidence": [{"message": 1, "start": 0, "end": 5, "quote": "Whose"}]},
    ):
        with pytest.raises(FieldProblem) as refused:
            save(desk, assignment, **wrong)
        assert refused.value.field == "evidence"
    save(desk, assignment, evidence=[{"message": 1, "start": 0, "end": 5}])
    assert Label.objects.get().evidence == [{"n": 1, "start": 0, "end": 5, "quote": "Where"}]


@pytest.mark.django_db
def test_an_answer_is_bound_to_the_criterion_version_that_was_read() -> None:
    desk = make_desk()
    assignment, criterion = desk.taken(), desk.criteria[0]
    CriterionVersion.objects.create(
        criterion=criterion, number=2, question="New?", definition="New.", content_hash="x"
    )
    save(desk, assignment, version=1)
    assert Label.objects.get().version.number == 1
    with pytest.raises(FieldProblem):
        save(desk, assignment, version=3)


# ---------- submitting ----------


@pytest.mark.django_db
def test_submitting_needs_an_answer_on_every_criterion() -> None:
    desk = make_desk()
    assignment = desk.taken()
    save(desk, assignment)
    with pytest.raises(Unanswered) as refused:
        assignment_submit(assignment=assignment, rater=desk.rater)
    assert refused.value.keys == ["correct"]
    assert not Label.objects.filter(state="submitted").exists()


@pytest.mark.django_db
def test_drafts_count_nowhere_and_submitted_labels_make_the_consensus() -> None:
    desk = make_desk()
    assignment = desk.taken()
    answer_all(assignment)
    assert not Consensus.objects.exists()
    for _ in range(2):
        assignment_submit(assignment=assignment, rater=desk.rater)
    assert list(Consensus.objects.values_list("state", "n_true").distinct()) == [("true", 1)]
    assert set(Label.objects.values_list("state", "revision")) == {("submitted", 2)}
    assert LabelRevision.objects.filter(state="submitted").count() == 2
    for criterion in desk.criteria:
        criterion.refresh_from_db()
        assert criterion.labels_seq == 1


@pytest.mark.heavy
@pytest.mark.django_db
def test_submitting_takes_the_same_number_of_queries_for_2_and_8_criteria() -> None:
    from django.test.utils import CaptureQueriesContext

    counts = []
    desk = make_desk(keys=[f"k{n}" for n in range(8)])
    for criteria in (desk.criteria[:2], desk.criteria):
        desk.job.criteria.set(criteria)
        assignment = desk.taken()
        answer_all(assignment)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assignment_submit(assignment=assignment, rater=desk.rater)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.django_db
def test_a_correction_after_submitting_counts_at_once_and_cannot_be_a_clearing() -> None:
    desk = make_desk()
    assignment = desk.taken()
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)
    save(desk, assignment, value=False)
    assert Consensus.objects.get(criterion=desk.criteria[0]).state == "false"
    assert LabelRevision.objects.filter(label__criterion=desk.criteria[0]).count() == 3
    with pytest.raises(Conflict, match="changed but not cleared"):
        label_clear(assignment=assignment, rater=desk.rater, criterion=desk.criteria[0])


@pytest.mark.django_db
def test_an_older_submitted_label_stays_in_force_until_the_new_job_is_submitted() -> None:
    desk = make_desk(chats=1, raters=1)
    first = desk.taken()
    answer_all(first, value=True)
    assignment_submit(assignment=first, rater=desk.rater)
    from labeling.jobs.services import job_open

    again = job_open(
        chat_set=desk.chat_set, name="Relabel", criteria=desk.criteria, raters=desk.raters, overlap=1, by=None
    )
    second = assignment_next(rater=desk.rater, job=again)
    assert second is not None
    assert answers_of(assignment=second, criteria=desk.criteria) == {}
    answer_all(second, value=False)
    assert set(Label.objects.values_list("value", "state")) == {(True, "submitted")}
    assignment_submit(assignment=second, rater=desk.rater)
    assert set(Label.objects.values_list("value", "state")) == {(False, "submitted")}
    assert set(Consensus.objects.values_list("state", flat=True)) == {"false"}


@pytest.mark.django_db
def test_nothing_can_be_saved_or_submitted_in_a_closed_job() -> None:
    desk = make_desk()
    assignment = desk.taken()
    answer_all(assignment)
    desk.job.state = "closed"
    desk.job.save()
    with pytest.raises(Conflict, match="closed"):
        save(desk, assignment, value=False)
    with pytest.raises(Conflict, match="closed"):
        assignment_submit(assignment=assignment, rater=desk.rater)


# ---------- skipping ----------


@pytest.mark.django_db
def test_a_skipped_chat_goes_to_another_rater_and_never_back() -> None:
    desk = make_desk(chats=1)
    mine = desk.taken()
    save(desk, mine)
    for _ in range(2):
        assignment_skip(assignment=mine, rater=desk.rater, reason="other: two chats in one")
    mine.refresh_from_db()
    assert (mine.state, mine.skip_reason) == ("skipped", "other: two chats in one")
    assert Assignment.objects.filter(state="open").count() == 1
    assert assignment_next(rater=desk.rater, job=desk.job) is None
    assert desk.taken(desk.raters[1]).chat_id == mine.chat_id
    with pytest.raises(Conflict, match="skipped"):
        save(desk, mine)
    assert Label.objects.get(rater=desk.rater).state == "draft"


@pytest.mark.django_db
def test_a_submitted_chat_cannot_be_skipped() -> None:
    desk = make_desk()
    assignment = desk.taken()
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)
    with pytest.raises(Conflict):
        assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")


# ---------- many at once ----------


@pytest.mark.django_db(transaction=True)
def test_sixteen_identical_saves_at_once_make_one_row_and_one_revision() -> None:
    desk = make_desk()
    assignment, client_id = desk.taken(), uuid.uuid4()
    at_once(lambda _: save(desk, assignment, client_id=client_id), times=16)
    assert (Label.objects.count(), LabelRevision.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_raters_taking_chats_at_once_never_exceed_the_overlap_nor_meet_a_chat_twice() -> None:
    desk = make_desk(chats=6, raters=8, overlap=2)

    def work(number: int) -> list[int]:
        rater, chats = desk.raters[number], []
        while assignment := assignment_next(rater=rater, job=desk.job):
            chats.append(assignment.chat_id)
            answer_all(assignment)
            assignment_submit(assignment=assignment, rater=rater)
        return chats

    taken = at_once(work, times=8)
    assert all(len(chats) == len(set(chats)) for chats in taken)
    assert Counter(chat for chats in taken for chat in chats) == {chat.pk: 2 for chat in desk.chats}
    assert set(Consensus.objects.values_list("n_true", flat=True)) == {2}


@pytest.mark.django_db(transaction=True)
def test_two_tabs_of_one_rater_get_the_same_chat() -> None:
    desk = make_desk(chats=5)
    assert len(set(at_once(lambda _: desk.taken().pk, times=6))) == 1


@pytest.mark.django_db(transaction=True)
def test_an_expired_slot_wanted_by_many_goes_to_one() -> None:
    desk = make_desk(chats=1, raters=6)
    mine = desk.taken()
    expire(mine)
    taken = at_once(lambda n: assignment_next(rater=desk.raters[n + 1], job=desk.job), times=5)
    assert len([assignment for assignment in taken if assignment]) == 1
    assert Assignment.objects.filter(state="leased").count() == 1
