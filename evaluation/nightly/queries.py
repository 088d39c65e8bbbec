"""Sample plans with their judge and their nights, and what earlier verdicts say about the topics."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from django.db.models import Count, Max, Q, QuerySet
from django.urls import reverse

from common.inbox.subjects import Subject
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.profiles import profile_choice
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import Run, Verdict, error_in_words
from evaluation.runs.queries.hold_ups import hold_up
from labeling.models.people import User
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.core import SampleAllocation, StratumAllocation, audit_size, spread_over_criteria
from labeling.sampling.queries import SampleSize, shortfall_texts, topic_sizes, yesterday

# Nights whose verdicts tell how much those of a topic vary.
NIGHTS_OF_SPREADS = 14


@dataclass(frozen=True, slots=True)
class NightRow:
    """A night: its draw, the judge's run (None: not started), and `trouble`, why the judge stands still."""

    draw: SampleDraw
    run: Run | None
    trouble: str
    anchor_run: Run | None = None
    anchor_problem: str = ""

    @property
    def state(self) -> str:
        """Return a word for programs: empty, waiting, refused, or the run's state."""
        if not self.draw.sampled:
            return "empty"
        if self.run is None:
            return "refused" if self.trouble else "waiting"
        return self.run.state

    @property
    def state_label(self) -> str:
        """Return the state in words."""
        words = {"empty": "No chats", "waiting": "Waits for the judge", "refused": "Judge not started"}
        return words.get(self.state) or (self.run.standing if self.run else "")

    @property
    def startable(self) -> bool:
        """Whether a lead may start the judge by hand."""
        return self.state in ("waiting", "refused")

    @property
    def labels_label(self) -> str:
        """Return what became of the raters' part, in words; "" if the plan wants none or it is a job."""
        draw = self.draw
        if draw.labels_problem:
            return draw.labels_problem
        if draw.job_id or draw.labels_done:
            return ""
        return "Waits for the verdicts"

    @property
    def shortfall_texts(self) -> list[str]:
        """Return why the sample is not the one that was asked for."""
        return shortfall_texts(self.draw.shortfalls) if self.draw.sampled else []


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """What a plan would sample of a day; `raters` is its audit, without oversampled chats.

    `guesses`: the rule needs verdicts, and none of this plan are there yet.
    """

    day: date
    allocation: SampleAllocation
    raters: int
    guesses: bool

    @property
    def strata(self) -> list[StratumAllocation]:
        """Return the topics, the largest first."""
        return sorted(self.allocation.strata, key=lambda one: (-one.size, one.key))

    @property
    def frame_size(self) -> int:
        """Return how many chats could be sampled."""
        return sum(one.size for one in self.allocation.strata)

    @property
    def shortfall_texts(self) -> list[str]:
        """Return why the sample is not the one that was asked for."""
        return shortfall_texts([kind.value for kind in self.allocation.shortfalls])


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan, its judge, and its last night (None: none yet)."""

    plan: SamplePlan
    judge: NightlyJudge
    last: NightRow | None

    @property
    def wants_attention(self) -> bool:
        """Whether the last night's judge stands still."""
        return self.last is not None and bool(self.last.trouble)


def plan_preview(
    *, size: SampleSize, audit_share: float, plan: SamplePlan | None, day: date | None = None
) -> PlanPreview:
    """Return the allocation on a day's chats (None: yesterday); `plan` is the stored one, for its verdicts.

    At most four queries. Chats that are sampled already are no part of it.
    """
    spreads = spreads_of(plan, rule=size.rule) if plan else {}
    day = day or yesterday()
    allocation = size.allocated(topic_sizes(day), spreads)
    guesses = size.rule == SamplePlan.Rule.NEYMAN and not spreads
    return PlanPreview(day, allocation, audit_size(allocation.n, share=audit_share), guesses)


def plan_rows(plans: Sequence[SamplePlan] | None = None) -> list[PlanRow]:
    """Return these plans (None: all) with judge and last night; at most five queries."""
    if plans is None:
        plans = list(SamplePlan.objects.select_related("rubric", "group"))
    judges = {
        row.plan_id: row
        for row in NightlyJudge.objects.filter(plan__in=plans).select_related("profile", "anchor_set")
    }
    draws = SampleDraw.objects.filter(plan__in=plans)
    newest = draws.order_by().values_list("plan").annotate(day=Max("day"))
    wanted = Q(pk__in=[])
    for plan, day in newest:
        wanted |= Q(plan=plan, day=day)
    last = {row.draw.plan_id: row for row in night_rows(draws.filter(wanted))}
    return [PlanRow(plan, judges[plan.pk], last.get(plan.pk)) for plan in plans if plan.pk in judges]


def night_rows(draws: QuerySet[SampleDraw], *, whole: bool = False) -> list[NightRow]:
    """Return these nights, the newest first; three queries.

    With `whole` the newest running run is looked at: why it stands still, if it does (two more queries).
    """
    rows = list(draws.select_related("plan", "chat_set").order_by("-day", "-id"))
    nights = NightlyRun.objects.filter(draw__in=rows).select_related(
        "run__judge", "run__chat_set", "anchor_run"
    )
    by_draw = {night.draw_id: night for night in nights}
    found = [_row(draw, by_draw.get(draw.pk)) for draw in rows]
    if whole:
        for place, row in enumerate(found):
            if row.run and row.run.state == Run.State.RUNNING:
                beats = list(row.run.leases.values_list("beat_at", flat=True))
                found[place] = replace(row, trouble=hold_up(row.run, beats=beats) or row.trouble)
                break
    return found


def _row(draw: SampleDraw, night: NightlyRun | None) -> NightRow:
    if night is None:
        return NightRow(draw, None, "")
    if night.run is None:
        return NightRow(draw, None, night.problem)
    stands = night.run.state in (Run.State.PAUSED, Run.State.RUNNING)
    trouble = error_in_words(night.run.error) if stands else ""
    return NightRow(draw, night.run, trouble, night.anchor_run, night.anchor_problem)


def judge_problem(judge: NightlyJudge) -> str:
    """Return why tonight's judge could not start as things are, as far as is known; "" if nothing is."""
    try:
        judge_endpoint(profile_choice(judge.profile))
    except (InputProblem, FieldProblem, EmbeddedModelError) as problem:
        return str(problem)
    return ""


def spreads_of(plan: SamplePlan, *, rule: str) -> dict[str, float]:
    """Return the standard deviation of a verdict by topic, from the plan's last nights; two queries.

    Empty unless the rule uses it.
    """
    if rule != SamplePlan.Rule.NEYMAN:
        return {}
    nights = NightlyRun.objects.filter(draw__plan=plan, run__isnull=False).order_by("-draw__day")
    runs = list(nights.values_list("run", flat=True)[:NIGHTS_OF_SPREADS])
    verdicts = Verdict.objects.filter(run__in=runs, state=Verdict.State.READ, value__isnull=False)
    counts: dict[str, list[tuple[int, int]]] = {}
    rows = verdicts.order_by().values_list("chat__topic__key", "criterion")
    for topic, _, true, n in rows.annotate(true=Count("pk", filter=Q(value=True)), n=Count("pk")):
        counts.setdefault(topic, []).append((true, n))
    return {topic: spread_over_criteria(pairs) for topic, pairs in counts.items()}


def plan_subjects(ids: Collection[int], user: User) -> Mapping[int, Subject]:
    """Return those of these plans that the user may open."""
    if not user.has_perm("labeling.start_runs"):
        return {}
    return {
        row.pk: Subject(title=f"sample plan {row.name}", url=reverse("evaluation:sample_plan", args=[row.pk]))
        for row in SamplePlan.objects.filter(pk__in=ids)
    }
