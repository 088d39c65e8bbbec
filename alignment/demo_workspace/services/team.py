"""The labelling team's part of the demo: chats, labels, jobs, gold, decisions and notes; all invented."""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from django.db import transaction
from django.db.models import F, Max, Min, OuterRef, Subquery
from django.utils import timezone

from alignment.demo_workspace.core.compose import ComposedChat, Truth, passes_when
from alignment.demo_workspace.core.raters import InventedRater, labels_composed, raters_read
from alignment.demo_workspace.core.scenes import Dice
from alignment.demo_workspace.queries import composed_chats, written_truth
from alignment.demo_workspace.services.demo_workspace import DEMO, jsonl, moved, rubric_name
from labeling.adjudication.services import adjudication_decide, adjudications_import
from labeling.chats.services.chats import chats_import
from labeling.jobs.services import job_close, job_open, job_start
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelingJob, RaterNote
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.transfer.services.labels import labels_import

SUPPORT, CALIBRATION, GOLD, WORK = "Support chats", "Calibration round", "Gold chats", "Chats to label"
JOB = "Label the support chats"
GOLD_RATE = 0.05
# Of the chats that a lead has to decide, the share that waits; and how many decisions were revised later.
WAITING_SHARE, REVISED = 0.25, 3
BEFORE_LABELS, LABELS_FROM = timedelta(days=14), timedelta(days=8)
NOTES_SETTLED = 3
_NAMESPACE = uuid.NAMESPACE_OID


@dataclass(frozen=True, slots=True)
class Team:
    """The composed chats with their raters; `settings` are those of `raters.json`."""

    chats: Sequence[ComposedChat]
    raters: Sequence[InventedRater]
    settings: Mapping[str, Any]
    first_day: datetime

    @property
    def calibration(self) -> list[str]:
        """Ids of the chats of the calibration round: with faults, so that there is something to see."""
        return self._faulty()[: self.settings["calibration_chats"]]

    @property
    def gold(self) -> list[str]:
        """Ids of the gold chats."""
        first = self.settings["calibration_chats"]
        return self._faulty()[first : first + self.settings["gold_chats"]]

    @property
    def truth(self) -> dict[str, Truth]:
        """What is true of every chat, hand-written ones included, by id."""
        return written_truth() | {chat.id: chat.truth for chat in self.chats}

    def _faulty(self) -> list[str]:
        wrong = [c for c in self.chats if sum(v == (not passes_when(k)) for k, v in c.truth.items()) >= 2]
        return [chat.id for chat in wrong]


def team(*, first_day: datetime, count: int | None) -> Team:
    """Return the chats and raters of a demo that began on this day."""
    settings = json.loads((DEMO / "raters.json").read_text(encoding="utf-8"))
    chats = composed_chats(first_day=first_day - BEFORE_LABELS, count=count)
    return Team(chats, raters_read(settings), settings, first_day)


def topics_name() -> None:
    """Give the topics that were new in a file a name to read."""
    topics = list(Topic.objects.filter(name=F("key")))
    for topic in topics:
        topic.name = topic.key.replace("_", " ").capitalize()
    Topic.objects.bulk_update(topics, ["name"])


@transaction.atomic
def chats_ensure(team: Team) -> ChatSet:
    """Import the composed chats, in one set with the hand-written ones, and name their topics."""
    about: dict[str, Any] = {"set_name": SUPPORT, "rubric_name": rubric_name(), "origin": Chat.Origin.DEMO}
    with moved(DEMO / "chats.jsonl", team.first_day) as path:
        chats_import(path=path, **about)
    with jsonl([chat.as_line() for chat in team.chats], name="support_chats.jsonl") as path:
        chats_import(path=path, **about)
    topics_name()
    return ChatSet.objects.select_related("rubric").get(name=SUPPORT)


@transaction.atomic
def labels_ensure(team: Team) -> None:
    """Import the invented labels of the composed chats, and the lead's decisions on gold chats."""
    everybody = [*team.calibration, *team.gold]
    begin = team.first_day + LABELS_FROM
    lines = labels_composed(team.chats, team.settings, everybody=everybody, begin=begin)
    with jsonl(list(lines), name="support_labels.jsonl") as path:
        labels_import(path=path, source=Label.Source.DEMO, rater_kind=Rater.Kind.DEMO)
    decided = [
        {
            "chat_id": chat,
            "criterion": key,
            "adjudicated_by": "Demo lead",
            "value": value,
            "reason": "Known answer of a gold chat, agreed on by two leads.",
            "created_at": begin.isoformat(),
        }
        for chat in team.gold
        for key, value in team.truth[chat].items()
    ]
    with jsonl(decided, name="gold.jsonl") as path:
        adjudications_import(path=path)


@transaction.atomic
def jobs_ensure(team: Team, *, lead: User) -> None:
    """Create the finished calibration round and the job that the labels belong to."""
    if LabelingJob.objects.filter(name=JOB).exists():
        return
    sets = _sets(team)
    people = list(Rater.objects.filter(name__in=[rater.name for rater in team.raters]).order_by("name"))
    criteria = list(sets[WORK].rubric.criteria.filter(state=Criterion.State.ACTIVE))
    job = job_open(
        name=JOB,
        chat_set=sets[WORK],
        criteria=criteria,
        raters=people,
        overlap=3,
        overlap_share=sum(team.settings["several"].values()),
        calibration_set=sets[CALIBRATION],
        gold_set=sets[GOLD],
        gold_rate=GOLD_RATE,
        by=lead,
    )
    first = cast(LabelingJob, job.calibration)
    slots_submit(first, people)
    job_start(job=job, by=lead)
    job_close(job=first, by=lead)
    slots_submit(job, people)
    _skip(job, team)


def _sets(team: Team) -> dict[str, ChatSet]:
    """Divide the composed chats into sets of the job; chats keep their splits."""
    rubric = ChatSet.objects.select_related("rubric").get(name=SUPPORT).rubric
    kinds = {CALIBRATION: ChatSet.Kind.CALIBRATION, GOLD: ChatSet.Kind.GOLD, WORK: ChatSet.Kind.CURATED}
    sets = {name: ChatSet.objects.create(name=name, kind=kind, rubric=rubric) for name, kind in kinds.items()}
    parts = dict.fromkeys(team.calibration, CALIBRATION) | dict.fromkeys(team.gold, GOLD)
    members = ChatSetMember.objects.filter(chat_set__name=SUPPORT, chat__external_id__startswith="bw-")
    ChatSetMember.objects.bulk_create(
        ChatSetMember(
            chat_set=sets[parts.get(member.chat.external_id, WORK)],
            chat_id=member.chat_id,
            split=member.split,
            position=member.position,
        )
        for member in members.select_related("chat").order_by("position")
    )
    return sets


def slots_submit(job: LabelingJob, people: Iterable[Rater]) -> None:
    """Turn the job's open slots into finished ones of the raters who labelled, with their times."""
    opened = job.assignments.filter(state=Assignment.State.OPEN).order_by("position", "slot")
    first = {row.chat_id: row for row in reversed(opened)}
    opened.delete()
    slots: dict[int, int] = defaultdict(int)
    labels = Label.objects.filter(chat__in=list(first), rater__in=[rater.pk for rater in people])
    work = labels.values_list("chat", "rater").annotate(first=Min("given_at"), last=Max("given_at"))
    assignments = []
    for chat, rater, began, ended in work.order_by("chat", "first"):
        slots[chat] += 1
        begun = began - timedelta(seconds=20)
        assignments.append(
            Assignment(
                job=job, chat_id=chat, slot=slots[chat], position=first[chat].position,
                kind=first[chat].kind, rater_id=rater, state=Assignment.State.SUBMITTED, taken_at=begun,
                submitted_at=ended, guideline=job.guideline,
                active_ms=round((ended - begun).total_seconds() * 1000),
            )
        )  # fmt: skip
    Assignment.objects.bulk_create(assignments)
    own = Assignment.objects.filter(job=job, chat=OuterRef("chat"), rater=OuterRef("rater"))
    labels.update(assignment=Subquery(own.values("pk")[:1]))


def _skip(job: LabelingJob, team: Team) -> None:
    """Add a few chats that raters handed back, each with its reason."""
    dice, rows = Dice(team.settings["seed"]), []
    raters = {rater.name: rater for rater in Rater.objects.filter(name__in=[r.name for r in team.raters])}
    submitted = list(job.assignments.filter(kind=Assignment.Kind.NORMAL).order_by("position", "slot"))
    taken = {(row.chat_id, row.rater_id) for row in submitted}
    chats = {row.chat_id: row for row in submitted}
    for one in team.raters:
        for row in chats.values():
            rater = raters[one.name]
            if (row.chat_id, rater.pk) in taken or not dice.chance(one.skips):
                continue
            reason = dice.draw("skip", team.settings["skip_reasons"])
            rows.append(
                Assignment(
                    job=job, chat_id=row.chat_id, slot=1, position=row.position, rater=rater,
                    state=Assignment.State.SKIPPED, skip_reason=reason, taken_at=row.taken_at,
                )
            )  # fmt: skip
    Assignment.objects.bulk_create(rows)


@transaction.atomic
def decisions_ensure(team: Team, *, lead: User) -> None:
    """Let the lead decide most of what raters left open."""
    dice = Dice(team.settings["seed"])
    waiting = Consensus.objects.filter(state=Consensus.State.UNRESOLVED, chat__external_id__startswith="bw-")
    for item in waiting.select_related("chat", "criterion").order_by("pk"):
        if not dice.chance(WAITING_SHARE):
            _decide_truly(item, team, dice, lead)


@transaction.atomic
def decisions_finish(team: Team, *, lead: User) -> None:
    """Let the lead revise a few decisions, and decide what had waited."""
    rows = Adjudication.objects.filter(by=lead, replaced_at=None).select_related("chat", "criterion")
    for row in rows.order_by("pk")[:REVISED]:
        reason = team.settings["decisions"]["revised"]
        _decide(row.chat, row.criterion, not row.value, reason, lead, seen=row.pk)
    dice, waiting = Dice(team.settings["seed"]), Consensus.objects.filter(state=Consensus.State.UNRESOLVED)
    for item in waiting.select_related("chat", "criterion").order_by("pk"):
        _decide_truly(item, team, dice, lead)


def _decide_truly(item: Consensus, team: Team, dice: Dice, lead: User) -> None:
    settings, value = team.settings["decisions"], team.truth[item.chat.external_id][item.criterion.key]
    kind = "na" if value is None else "fine" if value == passes_when(item.criterion.key) else "fault"
    _decide(item.chat, item.criterion, value, dice.draw(kind, settings[kind]), lead, seen=None)


def _decide(
    chat: Chat, criterion: Criterion, value: bool | None, reason: str, lead: User, *, seen: int | None
) -> None:
    adjudication_decide(chat=chat, criterion=criterion, value=value, reason=reason, by=lead, seen=seen)


@transaction.atomic
def notes_ensure(team: Team, *, lead: User) -> None:
    """Store the raters' notes on chats that they labelled; the lead has settled some."""
    for number, note in enumerate(team.settings["notes"]):
        label = Label.objects.filter(rater__name=note["rater"], chat__external_id__startswith="bw-")
        criterion = Criterion.objects.filter(key=note.get("criterion", "")).first()
        if criterion is not None:
            label = label.filter(criterion=criterion)
        found = label.select_related("rater", "chat").order_by("pk")[10 + number]
        settled: dict[str, Any] = {}
        if number < NOTES_SETTLED:
            settled = {"settled_by": lead, "settled_at": timezone.now() + timedelta(hours=20 + number)}
        RaterNote.objects.get_or_create(
            rater=found.rater,
            client_id=uuid.uuid5(_NAMESPACE, f"{SUPPORT} note {number}"),
            defaults={
                "chat": found.chat,
                "criterion": criterion,
                "version": criterion.versions.latest("number") if criterion else None,
                "kind": note["kind"],
                "text": note["text"],
                **settled,
            },
        )
