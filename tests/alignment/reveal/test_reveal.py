"""After submitting a rater may see the judge's view; what they change then is kept, and counts nowhere."""

import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.reports import alignment_report
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from labeling.jobs.services import job_open
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, Consensus, Label, LabelRevision
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion
from labeling.rating.services.answers import label_save
from labeling.rating.services.leases import LEASE, assignment_next
from labeling.rating.services.submission import assignment_submit
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.judged_job import judge_desk
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    Workspace.current()
    Workspace.objects.update(reveal_after_submit=True)
    return make_desk(chats=2, raters=2, overlap=2)


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def submitted(desk: Desk, number: int = 0) -> Assignment:
    assignment = desk.taken(desk.raters[number])
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=desk.raters[number])


def reveal(client: Client, assignment: Assignment) -> Any:
    return client.post(reverse("api_reveal", args=[assignment.pk]))


def relabelled(desk: Desk, *, value: bool = False) -> Assignment:
    """The first chat again, in a second job, answered and submitted.

    NB: by hand; the queue gives no chat again to who was shown the judge's view of it.
    """
    again = job_open(
        chat_set=desk.chat_set, name="Again", criteria=desk.criteria, raters=desk.raters, overlap=2, by=None
    )
    slot = Assignment.objects.filter(job=again, chat=desk.chats[0]).order_by("slot")[0]
    slot.rater, slot.state, slot.lease_token = desk.rater, "leased", uuid.uuid4()
    slot.lease_expires_at = timezone.now() + LEASE
    slot.save()
    answer_all(slot, value=value)
    return assignment_submit(assignment=slot, rater=desk.rater)


# ---------- seeing ----------


def test_a_submitted_chat_shows_what_the_judge_said(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = submitted(desk)
    shown = reveal(rater, assignment)
    assignment.refresh_from_db()
    assert (shown.status_code, shown.json()["judge"]) == (200, "outside judge")
    assert shown.json()["verdicts"] == [
        {"criterion": key, "value": False, "state": "read", "rationale": "Because of turn 2."}
        for key in ("polite", "correct")
    ]
    assert assignment.revealed_at is not None
    first = assignment.revealed_at
    assert reveal(rater, assignment).json() == shown.json()
    assignment.refresh_from_db()
    assert assignment.revealed_at == first


def test_before_submitting_there_is_nothing_to_see(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = desk.taken()
    answer_all(assignment)
    assert reveal(rater, assignment).status_code == 404
    assert not Assignment.objects.filter(revealed_at__isnull=False).exists()


def test_nor_where_the_workspace_does_not_reveal(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    Workspace.objects.update(reveal_after_submit=False)
    assert reveal(rater, submitted(desk)).status_code == 404


def test_nor_while_the_rater_still_has_the_chat_to_label_in_another_job(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = submitted(desk)
    again = job_open(
        chat_set=desk.chat_set, name="Again", criteria=desk.criteria, raters=desk.raters, overlap=1, by=None
    )
    second = assignment_next(rater=desk.rater, job=again)
    assert second is not None and second.chat_id == assignment.chat_id
    assert reveal(rater, assignment).status_code == 404


def test_another_raters_chat_does_not_exist(desk: Desk) -> None:
    judge_desk(desk)
    assert reveal(signed_in(user_of(desk.raters[1])), submitted(desk)).status_code == 404


def test_a_chat_that_no_run_has_judged_reveals_nothing(desk: Desk, rater: Client) -> None:
    judge_desk(desk, state="running")
    assignment = submitted(desk)
    shown = reveal(rater, assignment)
    assert (shown.status_code, shown.json()) == (200, {"judge": "", "revealed_at": None, "verdicts": []})
    assert not Assignment.objects.filter(revealed_at__isnull=False).exists()


def test_the_default_profiles_newest_finished_run_speaks(desk: Desk, rater: Client) -> None:
    default = JudgeProfile.objects.get(is_default=True)
    other = JudgeProfile.objects.create(name="Trial", config={})
    judge_desk(desk, name="default, older", profile=default)
    judge_desk(desk, name="default, newer", profile=default, state="done_with_failures")
    judge_desk(desk, name="default, not finished", profile=default, state="paused")
    judge_desk(desk, name="trial", profile=other)
    judge_desk(desk, name="imported")
    assignment = submitted(desk)
    assert reveal(rater, assignment).json()["judge"] == "default, newer"
    JudgeProfile.objects.update(is_default=False)
    assert reveal(rater, assignment).json()["judge"] == "imported"


def test_runs_that_are_no_judgement_of_a_set_are_never_shown(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    Run.objects.update(purpose="trial")
    assert reveal(rater, submitted(desk)).json()["judge"] == ""
    Run.objects.update(purpose="import")
    assert reveal(rater, Assignment.objects.get(state="submitted")).json()["judge"] == "outside judge"


def test_verdicts_on_other_criteria_are_not_shown(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    desk.job.criteria.remove(desk.criteria[1])
    shown = reveal(rater, submitted(desk)).json()["verdicts"]
    assert [row["criterion"] for row in shown] == ["polite"]


# ---------- changing afterwards ----------


def counted() -> dict[str, Any]:
    """Everything that reports are made of."""
    fields = (
        "id",
        "value",
        "rationale",
        "evidence",
        "version",
        "state",
        "post_reveal",
        "given_at",
        "active_ms",
    )
    return {
        "labels": list(Label.objects.order_by("id").values(*fields, "active_ms")),
        "consensus": list(Consensus.objects.order_by("id").values()),
        "seq": list(Criterion.objects.order_by("id").values_list("labels_seq", flat=True)),
        "reports": [
            alignment_report(Scope(chat_set, run, against=against))
            for chat_set in ChatSet.objects.all()
            for run in (None, Run.objects.get())
            for against in ("consensus", "rater:mara")
        ],
    }


def test_a_change_after_the_reveal_is_history_and_changes_no_number(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    submitted(desk, 1)
    assignment = submitted(desk)
    reveal(rater, assignment)
    before = counted()
    changed = put(rater, label_url(assignment), value=False, rationale="The judge is right.", active_ms=9000)
    assert (changed.status_code, changed.json()["post_reveal"], changed.json()["state"]) == (
        200,
        True,
        "submitted",
    )
    assert counted() == before
    newest = LabelRevision.objects.order_by("-id")[0]
    assert (newest.value, newest.post_reveal, newest.rationale) == (False, True, "The judge is right.")


def test_the_rater_sees_the_changed_answer_as_not_counted(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = submitted(desk)
    reveal(rater, assignment)
    first = put(rater, label_url(assignment), value=False, revision=2).json()
    put(rater, label_url(assignment), value=None, rationale="?", revision=first["revision"])
    second = put(rater, label_url(assignment, "correct"), value=None, revision=2)
    shown = rater.get(reverse("api_assignment", args=[assignment.pk])).json()
    assert shown["labels"] == [first, second.json()]
    assert [(row["value"], row["post_reveal"]) for row in shown["labels"]] == [(False, True), (None, True)]
    assert shown["revealed_at"] is not None


def test_a_change_before_the_reveal_still_counts(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = submitted(desk)
    put(rater, label_url(assignment), value=False)
    assert Consensus.objects.get(criterion=desk.criteria[0]).state == "false"


def test_another_raters_labels_on_the_chat_still_count(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    reveal(rater, submitted(desk))
    submitted(desk, 1)
    assert set(Consensus.objects.values_list("n_true", flat=True)) == {2}


def test_the_same_chat_in_a_later_job_does_not_count_for_who_has_seen_the_view(
    desk: Desk, rater: Client
) -> None:
    judge_desk(desk)
    reveal(rater, submitted(desk))
    before = counted()
    relabelled(desk)
    assert counted() == before
    assert LabelRevision.objects.filter(post_reveal=True, state="submitted", value=False).count() == 2


def test_a_criterion_first_answered_after_the_reveal_never_counts(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    desk.job.criteria.remove(desk.criteria[1])
    reveal(rater, submitted(desk))
    before = list(Consensus.objects.values())
    relabelled(desk)
    new = Label.objects.get(criterion=desk.criteria[1])
    assert (new.state, new.post_reveal) == ("submitted", True)
    assert list(Consensus.objects.values()) == before
    assert not Label.objects.counted().filter(criterion=desk.criteria[1]).exists()


def test_a_draft_from_before_the_reveal_that_is_submitted_after_it_does_not_count(desk: Desk) -> None:
    judge_desk(desk)
    assignment = desk.taken()
    answer_all(assignment)
    Assignment.objects.filter(pk=assignment.pk).update(revealed_at=assignment.lease_expires_at)
    assignment_submit(assignment=assignment, rater=desk.rater)
    assert set(Label.objects.values_list("state", "post_reveal")) == {("submitted", True)}
    assert not Consensus.objects.exists()


def test_the_same_late_change_twice_is_one_revision(desk: Desk, rater: Client) -> None:
    judge_desk(desk)
    assignment = submitted(desk)
    reveal(rater, assignment)
    client_id = uuid.uuid4()
    for _ in range(2):
        label_save(
            assignment=assignment,
            rater=desk.rater,
            criterion=desk.criteria[0],
            value=False,
            client_id=client_id,
        )
    assert LabelRevision.objects.filter(post_reveal=True).count() == 1
