"""Labelling part of the demo: a finished round and job of invented raters, notes."""

import json
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, cast

from django.db import transaction

from alignment.demo_workspace.services.demo_workspace import DEMO, LABELLED, SET
from labeling.jobs.services import job_close, job_open, job_start
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Assignment, Label, LabelingJob, RaterNote
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion

JOB = "Label the demo chats"
INVENTED = "Labels of invented raters (demo)"
ROUND_SET, GOLD_SET, WORK_SET = "demo calibration", "demo gold", "demo work"
ROUND_CHATS = ("demo-01", "demo-06", "demo-22")  # with disagreements on several criteria
GOLD_CHATS = ("demo-09", "demo-13", "demo-15", "demo-16")  # they have decisions
GOLD_RATE = 0.2
ONE_ANSWER = timedelta(seconds=15)


@transaction.atomic
def labelling_ensure(*, chat_set: ChatSet, rater: Rater, lead: User) -> None:
    """Create the labelling part of the demo; existing rows are kept.

    The jobs assign the labels of the demo file to raters and times.
    """
    sets = _sets(chat_set)
    settings: dict[str, Any] = {
        "chat_set": sets[WORK_SET],
        "criteria": list(chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)),
        "by": lead,
        "gold_set": sets[GOLD_SET],
        "gold_rate": GOLD_RATE,
    }
    if not LabelingJob.objects.filter(name=INVENTED).exists():
        _invented(settings, sets[ROUND_SET], lead)
        _notes()
    if not LabelingJob.objects.filter(name=JOB).exists():
        job_open(name=JOB, raters=[rater], overlap=1, **settings)


def _invented(settings: dict[str, Any], round_set: ChatSet, lead: User) -> None:
    """Create a finished job of the invented raters after a finished calibration round."""
    people = list(Rater.objects.filter(name__in=LABELLED).order_by("name"))
    job = job_open(name=INVENTED, raters=people, overlap=len(people), calibration_set=round_set, **settings)
    first = cast(LabelingJob, job.calibration)
    _labelled(first, people)
    job_start(job=job, by=lead)
    job_close(job=first, by=lead)
    _labelled(job, people)


def _sets(chat_set: ChatSet) -> dict[str, ChatSet]:
    """Divide the demo's chats into three sets by name; chats keep their splits."""
    kinds = {ROUND_SET: ChatSet.Kind.CALIBRATION, GOLD_SET: ChatSet.Kind.GOLD, WORK_SET: ChatSet.Kind.CURATED}
    made = [
        ChatSet.objects.get_or_create(name=name, defaults={"kind": kind, "rubric": chat_set.rubric})
        for name, kind in kinds.items()
    ]
    sets = {row.name: row for row, _ in made}
    parts = {**dict.fromkeys(ROUND_CHATS, ROUND_SET), **dict.fromkeys(GOLD_CHATS, GOLD_SET)}
    if any(is_new for _, is_new in made):
        ChatSetMember.objects.bulk_create(
            ChatSetMember(
                chat_set=sets[parts.get(member.chat.external_id, WORK_SET)],
                chat=member.chat,
                split=member.split,
                position=member.position,
            )
            for member in chat_set.members.select_related("chat").order_by("position")
        )
    return sets


def _labelled(job: LabelingJob, people: Iterable[Rater]) -> None:
    """Submit every chat of the job for each rater, with the labels of the demo file."""
    opened = list(job.assignments.filter(state=Assignment.State.OPEN).order_by("position", "slot"))
    first = {row.chat_id: row for row in reversed(opened)}
    job.assignments.filter(pk__in=[row.pk for row in opened]).delete()
    for row in first.values():
        for slot, rater in enumerate(people, 1):
            labels = Label.objects.filter(chat=row.chat_id, rater=rater, criterion__in=job.criteria.all())
            times = sorted(labels.values_list("given_at", flat=True))
            assignment = Assignment.objects.create(
                job=job, chat_id=row.chat_id, slot=slot, position=row.position, kind=row.kind, rater=rater,
                **_submitted(times),
            )  # fmt: skip
            labels.update(assignment=assignment)


def _submitted(times: list[datetime]) -> dict[str, Any]:
    """Return the fields of an assignment whose labels have these times."""
    begun = times[0] - ONE_ANSWER
    worked = times[-1] - begun
    return {
        "state": Assignment.State.SUBMITTED,
        "taken_at": begun,
        "submitted_at": times[-1],
        "active_ms": round(worked.total_seconds() * 1000),
    }


def _notes() -> None:
    """Create the notes of the invented raters, on the first version of the criteria."""
    for number, note in enumerate(json.loads((DEMO / "notes.json").read_text(encoding="utf-8"))):
        criterion = Criterion.objects.filter(key=note.get("criterion", "")).first()
        RaterNote.objects.create(
            rater=Rater.objects.get(name=note["rater"]),
            chat=Chat.objects.get(external_id=note["chat"]),
            criterion=criterion,
            version=criterion.versions.get(number=1) if criterion else None,
            kind=note["kind"],
            text=note["text"],
            client_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{SET} note {number}"),
        )
