"""A sample plan with its judge: save it, sample a night, and start the judge's run on the sample."""

import hashlib
import logging
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from common.inbox.services import Kind, inbox_add
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.profiles import profile_choice
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import ANCHORS, Run
from evaluation.nightly.queries import spreads_of
from evaluation.runs.services.control import run_launch
from evaluation.runs.services.runs import RunChoice
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import due_days
from labeling.sampling.services import DrawRefused, PlanSettings, draw_night, plan_save

log = logging.getLogger(__name__)

PROBLEM_LENGTH = 500
FEWEST_ANCHORS, MOST_ANCHORS = 30, 1000
# Anchors have a replicate a night, above those that people choose: no answer to it is stored yet.
ANCHOR_REPLICATES = 100_000
CENT = Decimal("0.0001")
# A judge that cannot start is tried again for so long; then a lead starts it.
TRY_FOR = timedelta(hours=24)
# A run whose endpoint does not answer goes on by itself when it does; its plan's owner is told after so long.
STALLED_AFTER = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """What judges the samples, and the budget of a night (None: no limit).

    anchors : the first so many chats of `anchor_set` are judged anew every night; 0 without a set.
    """

    profile: JudgeProfile
    budget_usd: Decimal | None = None
    mode: Run.Mode = Run.Mode.LIVE
    anchor_set: ChatSet | None = None
    anchors: int = 0

    @property
    def columns(self) -> dict[str, Any]:
        """Return the values of its columns."""
        names = ("profile", "budget_usd", "mode", "anchor_set", "anchors")
        return {name: getattr(self, name) for name in names}


@transaction.atomic
def nightly_plan_save(
    *, settings: PlanSettings, judge: JudgeChoice, by: User | None, plan: SamplePlan | None = None
) -> SamplePlan:
    """Create a plan with its judge, or change both, and log it. Raises FieldProblem, by field."""
    _check_anchors(judge, settings.rubric)
    row = plan_save(
        settings=settings,
        by=by,
        plan=plan,
        profile=judge.profile.name,
        budget_usd=str(judge.budget_usd) if judge.budget_usd is not None else None,
        mode=judge.mode.value,
        anchor_set=judge.anchor_set.name if judge.anchor_set else None,
        anchors=judge.anchors,
    )
    NightlyJudge.objects.update_or_create(plan=row, defaults=judge.columns)
    return row


def _check_anchors(judge: JudgeChoice, rubric: Rubric) -> None:
    """Raise FieldProblem for anchors that would not stay the same, or too few to tell anything."""
    chosen = judge.anchor_set
    if chosen is None:
        if judge.anchors:
            raise FieldProblem("anchor_set", "Choose the chat set of the anchors.")
        return
    if chosen.kind == ChatSet.Kind.SAMPLE:
        raise FieldProblem("anchor_set", "Chats of a sample lose their texts. Choose a curated set.")
    if chosen.rubric_id != rubric.pk:
        raise FieldProblem("anchor_set", "This set has another rubric than the plan.")
    size = chosen.members.filter(chat__text_deleted_at=None).count()
    if size < FEWEST_ANCHORS:
        raise FieldProblem("anchor_set", f"Needs {FEWEST_ANCHORS} chats with a text. This set has {size}.")
    if not FEWEST_ANCHORS <= judge.anchors <= min(size, MOST_ANCHORS):
        most = min(size, MOST_ANCHORS)
        raise FieldProblem("anchors", f"Choose {FEWEST_ANCHORS} to {most:,} anchors of this set.")


def night_sample(
    *, plan: SamplePlan, day: date, by: User | None = None, seed: int | None = None
) -> SampleDraw:
    """Sample a day and start the judge on it; the judge's own problem is stored, not raised.

    Raises DrawRefused for a day that is not over, or that the plan has sampled.
    """
    draw = draw_night(plan=plan, day=day, spreads=spreads_of(plan, rule=plan.rule), by=by, seed=seed)
    if draw.sampled:
        night_start(draw=draw)
    return draw


def night_start(*, draw: SampleDraw) -> NightlyRun:
    """Start the judge's run on a night's sample, once; where it cannot start, store why and tell the owner.

    Repeating it after the start changes nothing.
    """
    try:
        return _start(draw)
    except (InputProblem, FieldProblem, EmbeddedModelError) as problem:
        return _refused(draw, str(problem)[:PROBLEM_LENGTH])


@transaction.atomic
def _start(draw: SampleDraw) -> NightlyRun:
    row = _locked(draw)
    night = NightlyRun.objects.filter(draw=row).select_related("run").first()
    if night is not None and night.run is not None:
        return night
    chosen = NightlyJudge.objects.select_related("profile", "anchor_set").get(plan=row.plan_id)
    judge = profile_choice(chosen.profile)
    if row.chat_set is None:
        raise InputProblem("this night has no chats")
    run = run_launch(
        chat_set=row.chat_set,
        judge=judge,
        run=night_choice(row, chosen),
        endpoint=judge_endpoint(judge),
        by=row.plan.created_by,
    )
    Judge.objects.filter(pk=run.judge_id, profile=None).update(profile=chosen.profile)
    night = night_store(row, run=run)
    if chosen.anchor_set is not None:
        _start_anchors(night, chosen, chosen.anchor_set)
    return night


def night_choice(draw: SampleDraw, chosen: NightlyJudge) -> RunChoice:
    """Return the scope of a night's run."""
    return RunChoice(
        mode=Run.Mode(chosen.mode),
        budget_usd=budget_shares(chosen.budget_usd, chats=draw.sampled, anchors=chosen.anchors).chats,
        options={"profile": chosen.profile.name, "sample_plan": draw.plan_id},
        source_hash=hashlib.sha256(f"sample draw {draw.pk}".encode()).hexdigest(),
    )


def anchors_choice(draw: SampleDraw, chosen: NightlyJudge) -> RunChoice:
    """Return the scope of a night's run over the anchors, asked anew."""
    return RunChoice(
        limit=chosen.anchors,
        replicate=ANCHOR_REPLICATES + draw.pk,
        mode=Run.Mode(chosen.mode),
        purpose=ANCHORS,
        budget_usd=budget_shares(chosen.budget_usd, chats=draw.sampled, anchors=chosen.anchors).anchors,
        options={"profile": chosen.profile.name, "sample_plan": draw.plan_id},
        source_hash=hashlib.sha256(f"anchors of draw {draw.pk}".encode()).hexdigest(),
    )


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Parts of a night's budget; None: no limit."""

    chats: Decimal | None
    anchors: Decimal | None


def budget_shares(budget: Decimal | None, *, chats: int, anchors: int) -> BudgetShares:
    """Share a night's budget between the sample and the anchors, by their numbers.

    >>> budget_shares(Decimal(6), chats=500, anchors=100)
    BudgetShares(chats=Decimal('5.0000'), anchors=Decimal('1.0000'))
    """
    if budget is None or not anchors:
        return BudgetShares(budget, None)
    part = max(CENT, (budget * anchors / (chats + anchors)).quantize(CENT))
    return BudgetShares(max(CENT, budget - part), part)


def _start_anchors(night: NightlyRun, chosen: NightlyJudge, anchor_set: ChatSet) -> None:
    """Start the same judge on the anchors, asked anew; the sample is judged in any case."""
    draw, judge = night.draw, profile_choice(chosen.profile)
    try:
        with transaction.atomic():
            night.anchor_run = run_launch(
                chat_set=anchor_set,
                judge=judge,
                run=anchors_choice(draw, chosen),
                endpoint=judge_endpoint(judge),
                by=draw.plan.created_by,
            )
    except (InputProblem, FieldProblem) as problem:
        night.anchor_problem = str(problem)[:PROBLEM_LENGTH]
    night.save(update_fields=["anchor_run", "anchor_problem"])


@transaction.atomic
def _refused(draw: SampleDraw, problem: str) -> NightlyRun:
    """Store the problem; a new one is news for the plan's owner."""
    row = _locked(draw)
    before = NightlyRun.objects.filter(draw=row).first()
    if before is not None and before.run_id:
        return before
    night = night_store(row, problem=problem)
    owner = row.plan.created_by
    if owner is not None and (before is None or before.problem != problem):
        inbox_add(users=[owner], kind=Kind.NIGHTLY, subject=f"plan:{row.plan_id}")
    return night


def _locked(draw: SampleDraw) -> SampleDraw:
    draws = SampleDraw.objects.select_related("plan__created_by", "chat_set__rubric")
    return draws.select_for_update(no_key=True, of=("self",)).get(pk=draw.pk)


def night_store(draw: SampleDraw, *, run: Run | None = None, problem: str = "") -> NightlyRun:
    """Store a night's run, or why there is none."""
    return NightlyRun.objects.update_or_create(
        draw=draw, defaults={"run": run, "problem": problem, "tried_at": timezone.now()}
    )[0]


# ---------- what is due ----------


def nights_work(now: datetime | None = None) -> None:
    """Sample every day that is due, the oldest first, and start the judges.

    A second worker finds nothing: a plan samples a day once, and a sample is judged once. A plan that fails
    does not hold up the others.
    """
    now = now or timezone.now()
    for plan in SamplePlan.objects.filter(state=SamplePlan.State.ACTIVE).order_by("pk"):
        try:
            _sample_due(plan, now)
        except Exception:
            log.exception("sample plan %s failed", plan.pk)
    for draw in _unjudged(now):
        try:
            night_start(draw=draw)
        except Exception:
            log.exception("the judge of sample %s failed to start", draw.pk)
    _tell_stalled(now)


def _sample_due(plan: SamplePlan, now: datetime) -> None:
    for day in due_days(plan, now=now):
        try:
            night_sample(plan=plan, day=day)
        except DrawRefused as refused:  # another worker was faster
            log.info("sample plan %s: %s", plan.pk, refused)


def _unjudged(now: datetime) -> list[SampleDraw]:
    """Samples of the last day without a run: refused ones, and those of a worker that died in between."""
    lately = SampleDraw.objects.filter(drawn_at__gt=now - TRY_FOR, sampled__gt=0)
    active = lately.filter(plan__state=SamplePlan.State.ACTIVE)
    tried = NightlyRun.objects.filter(Q(run__isnull=False) | Q(tried_at__gte=now)).values("draw")
    return list(active.exclude(pk__in=tried).order_by("pk"))


def _tell_stalled(now: datetime) -> None:
    """Tell the owner, once, of a run that waits for its endpoint; a paused run tells by itself."""
    nights = NightlyRun.objects.filter(run__state=Run.State.RUNNING, tried_at__lt=now - STALLED_AFTER)
    nights.exclude(problem="").filter(run__error="").update(problem="")
    stalled = nights.filter(problem="").exclude(run__error="")
    for night in stalled.select_related("run", "draw__plan__created_by"):
        words = night.run.error[:PROBLEM_LENGTH] if night.run else ""
        owner = night.draw.plan.created_by
        if NightlyRun.objects.filter(pk=night.pk, problem="").update(problem=words) and owner is not None:
            inbox_add(users=[owner], kind=Kind.NIGHTLY, subject=f"plan:{night.draw.plan_id}")
