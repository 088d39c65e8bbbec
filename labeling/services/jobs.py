"""Labelling jobs: a lead asks raters for labels of a chat set."""

from collections.abc import Sequence

from django.core.exceptions import ValidationError
from django.db import transaction

from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion


@transaction.atomic
def job_open(
    *,
    chat_set: ChatSet,
    name: str,
    criteria: Sequence[Criterion],
    raters: Sequence[Rater],
    overlap: int,
    by: User | None,
) -> LabelingJob:
    """Open a job: slots 1…overlap for each chat, topic after topic, each topic in the set's order.

    Raises ValidationError where the job could never be finished.
    """
    chat_ids = _chats_by_topic(chat_set)
    _check(chat_set=chat_set, criteria=criteria, raters=raters, overlap=overlap, chats=len(chat_ids))
    job = LabelingJob.objects.create(chat_set=chat_set, name=name, overlap=overlap, created_by=by)
    job.criteria.set(criteria)
    job.raters.set(raters)
    calibration = chat_set.kind == ChatSet.Kind.CALIBRATION
    kind = Assignment.Kind.CALIBRATION if calibration else Assignment.Kind.NORMAL
    Assignment.objects.bulk_create(
        (
            Assignment(job=job, chat_id=chat_id, slot=slot, position=position, kind=kind)
            for position, chat_id in enumerate(chat_ids, 1)
            for slot in range(1, overlap + 1)
        ),
        batch_size=2000,
    )
    return job


def _chats_by_topic(chat_set: ChatSet) -> list[int]:
    members = list(
        ChatSetMember.objects.filter(chat_set=chat_set)
        .order_by("position")
        .values_list("chat_id", "chat__topic_id")
    )
    rank: dict[int, int] = {}
    for _, topic_id in members:
        rank.setdefault(topic_id, len(rank))
    return [chat_id for chat_id, _ in sorted(members, key=lambda member: rank[member[1]])]


def _check(
    *, chat_set: ChatSet, criteria: Sequence[Criterion], raters: Sequence[Rater], overlap: int, chats: int
) -> None:
    if not chats:
        raise ValidationError("The chat set is empty.")
    if not criteria:
        raise ValidationError({"criteria": "Choose at least one criterion."})
    for criterion in criteria:
        if criterion.rubric_id != chat_set.rubric_id or criterion.state != Criterion.State.ACTIVE:
            raise ValidationError({"criteria": f"{criterion.key} is not active in the set's rubric."})
    # A rater labels a chat once, so more labels a chat than raters can never come.
    if not 1 <= overlap <= len(raters):
        raise ValidationError({"overlap": f"{overlap} labels a chat need {overlap} raters or more."})
