"""Sample plans: save, pause and resume them; sample the chats of a night."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from common.problems import FieldProblem, InputProblem, shown
from labeling.models.chats import PLAN, ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan
from labeling.people.services.audit import audit
from labeling.sampling.queries import DaySample, SampleSize, day_sample, size_of, team_size, yesterday

NAME_LIMIT = 80  # a chat set's name has the plan's and the day
MOST_CHATS = 100_000
MOST_OVERLAP = 20
AT_ONCE = 1000
SEEDS = 2**31
TRIES = 3  # another plan may take the same chats meanwhile

State = SamplePlan.State


class DrawRefused(InputProblem):
    """A day that cannot be sampled; the message says why."""


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What a lead chooses for a plan.

    audit_share : of the judged chats, 0 to 1, for the raters. oversample : further chats with a verdict of
    False. criteria : what raters are asked; none for every active criterion.
    """

    name: str
    rubric: Rubric
    size: SampleSize
    starts_at: time
    audit_share: float = 0.0
    oversample: int = 0
    overlap: int = 1
    raters: Sequence[User] = ()
    group: Group | None = None
    criteria: Sequence[Criterion] = ()

    @property
    def columns(self) -> dict[str, Any]:
        """Return the values of the plan's columns."""
        names = ("rubric", "starts_at", "audit_share", "oversample", "overlap", "group")
        return {"name": self.name.strip(), **self.size.as_json()} | {
            name: getattr(self, name) for name in names
        }

    def as_log(self) -> dict[str, Any]:
        """Return the settings for the audit log."""
        return {**self.size.as_json(), "name": self.name.strip(), "rubric": self.rubric.name} | {
            "starts_at": self.starts_at.isoformat("minutes"),
            "audit_share": self.audit_share,
            "oversample": self.oversample,
            "overlap": self.overlap,
            "raters": [user.get_username() for user in self.raters],
            "group": self.group.name if self.group else None,
            "criteria": [row.key for row in self.criteria],
        }


@transaction.atomic
def plan_save(
    *, settings: PlanSettings, by: User | None, plan: SamplePlan | None = None, **more: Any
) -> SamplePlan:
    """Create a plan, or change one, and log it with `more`. A new plan begins with today's chats.

    Raises FieldProblem, by field.
    """
    _check(settings, plan)
    row = SamplePlan(first_day=timezone.localdate(), created_by=by) if plan is None else _locked(plan)
    for name, value in settings.columns.items():
        setattr(row, name, value)
    row.save()
    row.raters.set(settings.raters)
    row.criteria.set(settings.criteria)
    verb = "plan changed" if plan else "plan created"
    audit(actor=by, verb=verb, obj=row, **settings.as_log(), **more)
    return row


@transaction.atomic
def plan_pause(*, plan: SamplePlan, by: User | None) -> SamplePlan:
    """Sample no further night until the plan is resumed. Repeating it changes nothing."""
    row = _locked(plan)
    if row.state == State.PAUSED:
        return row
    row.state = State.PAUSED
    row.save(update_fields=["state"])
    audit(actor=by, verb="plan paused", obj=row, name=row.name)
    return row


@transaction.atomic
def plan_resume(*, plan: SamplePlan, by: User | None) -> SamplePlan:
    """Sample again, from today's chats on: nights of the pause are not caught up."""
    row = _locked(plan)
    if row.state == State.ACTIVE:
        return row
    row.state, row.first_day = State.ACTIVE, timezone.localdate()
    row.save(update_fields=["state", "first_day"])
    audit(actor=by, verb="plan resumed", obj=row, name=row.name)
    return row


# ---------- a night ----------


def draw_night(
    *,
    plan: SamplePlan,
    day: date,
    spreads: Mapping[str, float],
    by: User | None = None,
    seed: int | None = None,
) -> SampleDraw:
    """Sample the chats of a day into a chat set; a day without chats gets an empty draw.

    The sample is computed before the transaction, and again if another plan has sampled one of its chats
    by then, so that nobody waits for it. `spreads`: of verdicts by topic, for Neyman allocation.

    Raises DrawRefused for a day that is not over, or that the plan has sampled.
    """
    if day > yesterday():
        raise DrawRefused(f"{day} is not over: choose an earlier day")
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    for _ in range(TRIES):
        if plan.draws.filter(day=day).exists():
            break
        sample = day_sample(day, size=size_of(plan), spreads=spreads, seed=seed)
        try:
            return _store(plan, day, sample, seed=seed, by=by)
        except IntegrityError:
            continue  # sampled by another worker, or its chats by another plan
    if plan.draws.filter(day=day).exists():
        raise DrawRefused(f"the plan {shown(plan.name)} has sampled {day} already")
    raise DrawRefused("other plans are sampling the same chats: try again")


@transaction.atomic
def _store(plan: SamplePlan, day: date, sample: DaySample, *, seed: int, by: User | None) -> SampleDraw:
    """Write the draw, its chats and their set; raises IntegrityError if the day or a chat was taken."""
    row = _locked(plan)
    strata = [stratum for stratum in sample.allocation.strata if stratum.size]
    draw = SampleDraw.objects.create(
        plan=row,
        day=day,
        seed=seed,
        settings=size_of(row).as_json(),
        strata=[
            {"topic": one.key, "size": one.size, "n": one.n, "probability": one.probability} for one in strata
        ],
        shortfalls=[kind.value for kind in sample.allocation.shortfalls],
        frame_size=sample.frame_size,
        sampled=len(sample.chats),
        caught_up=day < yesterday(),
        chat_set=_chat_set(row, day, sample, seed) if sample.chats else None,
        labels_done=not (sample.chats and row.wants_labels),
    )
    SampledChat.objects.bulk_create(
        (
            SampledChat(draw=draw, chat_id=one.chat, stratum=one.topic, probability=one.probability)
            for one in sample.chats
        ),
        batch_size=AT_ONCE,
    )
    # The set has taken the chats: from now on their topic stays. One that changed since is sampled anew.
    if draw.chats.exclude(stratum=F("chat__topic__key")).exists():
        raise IntegrityError("a chat's topic changed while the night was sampled")
    audit(actor=by, verb="night sampled", obj=row, name=row.name, day=day.isoformat(), chats=draw.sampled)
    return draw


def _chat_set(plan: SamplePlan, day: date, sample: DaySample, seed: int) -> ChatSet:
    """Create the set that the judge runs on, in random order: a run that stops early is a sample, too."""
    chat_set = ChatSet.objects.create(
        name=free_set_name(f"{plan.name} {day}"),
        kind=ChatSet.Kind.SAMPLE,
        rubric_id=plan.rubric_id,
        sampling={PLAN: plan.pk, "day": day.isoformat(), "seed": seed, **size_of(plan).as_json()},
        created_by=plan.created_by,
    )
    ChatSetMember.objects.bulk_create(
        (
            ChatSetMember(
                chat_set=chat_set,
                chat_id=one.chat,
                position=position,
                split=Split.DEV,
                stratum=one.topic,
                inclusion_probability=one.probability,
            )
            for position, one in enumerate(sample.chats, 1)
        ),
        batch_size=AT_ONCE,
    )
    return chat_set


def free_set_name(name: str) -> str:
    """Return the name, with a number if a set has it already."""
    taken = set(ChatSet.objects.filter(name__startswith=name).values_list("name", flat=True))
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found


# ---------- validation ----------


def _locked(plan: SamplePlan) -> SamplePlan:
    return SamplePlan.objects.select_for_update(no_key=True, of=("self",)).get(pk=plan.pk)


def _check(settings: PlanSettings, plan: SamplePlan | None) -> None:
    """Raise FieldProblem for the first wrong value."""
    name = settings.name.strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise FieldProblem("name", f"A name has 1 to {NAME_LIMIT} characters.")
    others = SamplePlan.objects.exclude(pk=plan.pk) if plan else SamplePlan.objects.all()
    if others.filter(name=name).exists():
        raise FieldProblem("name", f"There is a plan {shown(name)} already. Choose another name.")
    if plan and settings.rubric.pk != plan.rubric_id and plan.draws.exists():
        raise FieldProblem("rubric", "The plan has sampled with its rubric. Create a new plan for another.")
    if not settings.rubric.criteria.filter(state=Criterion.State.ACTIVE).exists():
        raise FieldProblem("rubric", "This rubric has no active criterion.")
    _check_size(settings.size)
    _check_labels(settings)


def _check_size(size: SampleSize) -> None:
    if not 1 <= size.chats <= MOST_CHATS:
        raise FieldProblem("chats", f"A night's sample has 1 to {MOST_CHATS:,} chats.")
    if size.rule not in SamplePlan.Rule.values:
        raise FieldProblem("rule", f"Choose one of {', '.join(SamplePlan.Rule.values)}.")
    if not 0 <= size.minimum <= size.chats:
        raise FieldProblem("minimum", "The minimum of a topic is between 0 and the sample's chats.")
    if size.maximum is not None and not max(1, size.minimum) <= size.maximum <= MOST_CHATS:
        raise FieldProblem("maximum", "The maximum of a topic is at least its minimum, and at least 1.")


def _check_labels(settings: PlanSettings) -> None:
    if not 0 <= settings.audit_share <= 1:
        raise FieldProblem("audit_share", "The share for raters is between 0 and 1.")
    if not 0 <= settings.oversample <= MOST_CHATS:
        raise FieldProblem("oversample", f"Choose 0 to {MOST_CHATS:,} chats.")
    for row in settings.criteria:
        if row.rubric_id != settings.rubric.pk or row.state != Criterion.State.ACTIVE:
            raise FieldProblem("criteria", f"{row.key} is not active in the plan's rubric.")
    if not 1 <= settings.overlap <= MOST_OVERLAP:
        raise FieldProblem("overlap", f"A chat gets 1 to {MOST_OVERLAP} labels.")
    if not (settings.audit_share or settings.oversample):
        return
    team = team_size(raters=list(settings.raters), group=settings.group)
    if not team:
        raise FieldProblem("raters", "Choose raters, or a group with raters.")
    if settings.overlap > team:
        raise FieldProblem("overlap", f"{settings.overlap} labels per chat need {settings.overlap} raters.")
