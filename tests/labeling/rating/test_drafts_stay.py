"""A rater's draft is theirs: neither an import nor another job takes it off their screen."""

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from labeling.models.labels import Assignment, Consensus, Label, LabelRevision
from labeling.rating.queries.labels import Answer, answers_of
from labeling.rating.services.answers import Stale, label_clear, label_save
from labeling.rating.services.leases import assignment_next
from labeling.rating.services.submission import assignment_submit
from tests.factories.api_calls import at_once
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.files import label, run, write_jsonl

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=2, raters=2, overlap=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def save(desk: Desk, assignment: Assignment, *, value: bool = True, revision: int | None = None) -> Answer:
    return label_save(
        assignment=assignment,
        rater=desk.rater,
        criterion=desk.criteria[0],
        value=value,
        client_id=uuid.uuid4(),
        revision=revision,
    )


def drafts(desk: Desk, assignment: Assignment) -> dict[str, bool | None]:
    assignment.refresh_from_db()
    found = answers_of(assignment=assignment, criteria=desk.criteria)
    return {key: answer.value for key, answer in found.items()}


# ---------- an import ----------


def import_other_answers(path: Path, *, value: bool = False) -> None:
    """A file that answers the first chat otherwise in the rater's name."""
    keys = ("polite", "correct")
    lines = [label("chat-1", criterion=key, rater="mara", value=value) for key in keys]
    run("import_labels", write_jsonl(path, *lines), "--replace-account-labels")


def test_an_import_leaves_the_draft_on_the_screen_and_submitting_it_counts(desk: Desk, path: Path) -> None:
    answer_all(assignment := desk.taken())
    import_other_answers(path)
    assert set(Consensus.objects.values_list("state", flat=True)) == {"false"}
    assert drafts(desk, assignment) == {"polite": True, "correct": True}
    assignment_submit(assignment=assignment, rater=desk.rater, revisions={"polite": 1, "correct": 1})
    assert set(Label.objects.values_list("value", "state", "source")) == {(True, "submitted", "screen")}
    assert set(Consensus.objects.values_list("state", flat=True)) == {"true"}
    assert list(
        LabelRevision.objects.filter(label__criterion=desk.criteria[0])
        .order_by("number")
        .values_list("number", "value", "state")
    ) == [(1, True, "draft"), (2, False, "submitted"), (3, True, "submitted")]


def test_after_an_import_the_tab_saves_on_over_the_answer_it_knows(desk: Desk, path: Path) -> None:
    assignment = desk.taken()
    assert save(desk, assignment).revision == 1
    import_other_answers(path)
    assert save(desk, assignment, value=False, revision=1).revision == 3
    with pytest.raises(Stale):
        save(desk, assignment, revision=1)
    assert drafts(desk, assignment) == {"polite": False}


def test_a_draft_withdrawn_before_or_after_an_import_does_not_come_back(desk: Desk, path: Path) -> None:
    answer_all(assignment := desk.taken())
    label_clear(assignment=assignment, rater=desk.rater, criterion=desk.criteria[0])
    import_other_answers(path)
    label_clear(assignment=assignment, rater=desk.rater, criterion=desk.criteria[1])
    assert drafts(desk, assignment) == {}
    assert set(Label.objects.values_list("value", "state")) == {(False, "submitted")}


# ---------- another job ----------


def in_both(desk: Desk) -> tuple[Assignment, Assignment]:
    """The same chat in work in two jobs of one rater, as from before a chat was held once only."""
    first, again = desk.taken(), desk.opened(overlap=2)
    Assignment.objects.filter(pk=first.pk).update(state="open", lease_token=None, lease_expires_at=None)
    second = assignment_next(rater=desk.rater, job=again)
    assert second is not None
    Assignment.objects.filter(pk=first.pk).update(
        state="leased", lease_token=uuid.uuid4(), lease_expires_at=timezone.now() + timedelta(hours=1)
    )
    first.refresh_from_db()
    assert first.chat_id == second.chat_id
    return first, second


def test_another_jobs_submit_leaves_the_drafts_of_a_chat_that_was_taken_before_it(desk: Desk) -> None:
    first, second = in_both(desk)
    answer_all(first)
    assignment_submit(assignment=second, rater=desk.rater)
    assert drafts(desk, first) == {"polite": True, "correct": True}
    assignment_submit(assignment=first, rater=desk.rater)
    assert set(Label.objects.values_list("state", flat=True)) == {"submitted"}


def test_a_chat_taken_after_it_was_submitted_elsewhere_starts_empty(desk: Desk) -> None:
    answer_all(first := desk.taken())
    assignment_submit(assignment=first, rater=desk.rater)
    second = assignment_next(rater=desk.rater, job=desk.opened())
    assert second is not None and second.chat_id == first.chat_id
    assert drafts(desk, second) == {}
    assert save(desk, second, value=False, revision=0).value is False
    assert drafts(desk, second) == {"polite": False}


# ---------- the judge's view was shown ----------


def seen(desk: Desk) -> Assignment:
    """The first chat, submitted with True and then revealed."""
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    Assignment.objects.filter(pk=assignment.pk).update(revealed_at=timezone.now())
    return assignment


def test_an_import_changes_no_label_whose_rater_has_since_seen_the_judges_view(
    desk: Desk, path: Path
) -> None:
    seen(desk)
    before = list(Label.objects.order_by("pk").values())
    lines = [label("chat-1", criterion=key, rater="mara", value=False) for key in ("polite", "correct")]
    for _ in range(2):
        answer = run("import_labels", write_jsonl(path, *lines))
        assert answer.document == {"created": 0, "unchanged": 2, "updated": 0}
        assert "2 labels not changed: their raters have since seen the judge’s view" in answer.notes
    assert list(Label.objects.order_by("pk").values()) == before
    assert set(Consensus.objects.values_list("state", flat=True)) == {"true"}


def test_the_same_answers_again_need_no_word(desk: Desk, path: Path) -> None:
    seen(desk)
    lines = [label("chat-1", criterion=key, rater="mara", value=True) for key in ("polite", "correct")]
    answer = run("import_labels", write_jsonl(path, *lines))
    assert (answer.document["unchanged"], answer.notes) == (2, "")


def test_a_first_answer_by_such_a_rater_is_kept_and_counts_nowhere(desk: Desk, path: Path) -> None:
    desk.job.criteria.remove(desk.criteria[1])
    seen(desk)
    line = label("chat-1", criterion="correct", rater="mara", value=False)
    for created in (1, 0):
        assert run("import_labels", write_jsonl(path, line)).document["created"] == created
    new = Label.objects.get(criterion=desk.criteria[1])
    assert (new.value, new.post_reveal) == (False, True)
    assert not Consensus.objects.filter(criterion=desk.criteria[1]).exists()


def test_other_raters_and_other_chats_are_imported_as_ever(desk: Desk, path: Path) -> None:
    seen(desk)
    lines = [label("chat-1", rater="rater-2", value=False), label("chat-2", rater="mara", value=False)]
    assert run("import_labels", write_jsonl(path, *lines)).document["created"] == 2
    assert not Label.objects.filter(post_reveal=True).exists()


# ---------- first answers at once ----------


@pytest.mark.django_db(transaction=True)
def test_the_first_answers_to_a_chat_held_in_two_jobs_meet_and_both_are_kept() -> None:
    desk = make_desk(chats=2, raters=2, overlap=2)
    held = in_both(desk)
    at_once(lambda n: save(desk, held[n], value=bool(n)), times=2)
    assert Label.objects.count() == 1
    assert sorted(LabelRevision.objects.values_list("number", flat=True)) == [1, 2]
