"""What the watch reads of a night: judged rates by topic, the anchors' answers, and a week's audit labels."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, Sum
from django.utils import timezone

from alignment.alerts.core.attribution import Policy
from alignment.alerts.core.plan_watch import (
    CriterionNight,
    PlanNight,
    Settings,
    Stratum,
    monday,
)
from alignment.models.alerts import AlertSettings, WatchStep
from evaluation.models.day_counts import DayCount
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.chats import Topic
from labeling.models.labels import Assignment, Consensus, LabelingJob
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan
from labeling.people.queries.visibility import holdout_chats

ENDED = (*FINISHED, Run.State.CANCELLED)
# A run that stopped before its end counts with what it judged, after so long.
WAIT_FOR = timedelta(hours=24)
# Labels of a week that are still missing so long after it are left out.
LABELS_WAIT = timedelta(days=14)
WEEK = timedelta(days=7)
# A topic raises an alert where so many times the chats arrived that are needed.
OFTEN = 2
Pairs = dict[str, list[int]]


@dataclass(frozen=True)
class NightData:
    """A night for the watch; `labels`: anchors on which judge and consensus agree, and all, by criterion."""

    night: PlanNight
    judge: Judge
    labels: Pairs = field(default_factory=dict)

    @property
    def judged(self) -> Pairs:
        """Passing and applicable answers by criterion."""
        return {
            str(key): [sum(row.passed for row in one.judged), sum(row.answers for row in one.judged)]
            for key, one in self.night.criteria.items()
        }


def watch_settings(row: AlertSettings | None = None) -> Settings:
    """Return the settings in force for the watch; at most two queries."""
    row = row or AlertSettings.current()
    # Each active plan watches the criteria of its rubric.
    plans = Criterion.objects.filter(
        state=Criterion.State.ACTIVE, rubric__sample_plans__state=SamplePlan.State.ACTIVE
    )
    return Settings(
        policy=Policy(alpha=row.alarm_percent / 100, guard=row.guard),
        family=max(1, plans.count()),
        nights=row.baseline_nights,
        tolerance=row.tolerance_points / 100,
        mark_limit=row.mark_limit,
    )


def newest_step(plan: SamplePlan) -> WatchStep | None:
    """Return the step with the state in force; None before the first night."""
    return WatchStep.objects.filter(plan=plan).order_by("-pk").first()


def due_nights(plan: SamplePlan, *, now: datetime) -> list[NightlyRun]:
    """Return the nights that have ended and were not evaluated, in order; none behind one still at work."""
    seen = WatchStep.objects.filter(draw=OuterRef("draw"))
    nights = NightlyRun.objects.filter(~Exists(seen), draw__plan=plan, run__isnull=False).order_by("draw_id")
    due = []
    for night in nights.select_related("draw", "run__judge", "anchor_run"):
        late = night.draw.drawn_at < now - WAIT_FOR
        if not late and any(run and run.state not in ENDED for run in (night.run, night.anchor_run)):
            break
        due.append(night)
    return due


def night_data(night: NightlyRun, *, run: Run) -> NightData:
    """Return a night's counts; a constant number of queries, none of them over earlier nights."""
    prompts = {
        row.criterion_id: row
        for row in JudgePrompt.objects.filter(
            judge=run.judge_id, criterion__state=Criterion.State.ACTIVE
        ).select_related("criterion_version")
    }
    rows = _counts(run)
    versions: dict[str, int] = defaultdict(int)
    for _, _, version, count, _, _ in rows:
        versions[version] += count
    strata = _strata(rows, night.draw)
    answers = _anchor_answers(night, prompts)
    criteria = {
        key: CriterionNight(
            judge=f"{run.judge.model} {run.judge.engine} {row.prompt_version_id} {row.criterion_version_id}",
            question=str(row.criterion_version_id),
            judged=strata.get(key, ()),
            anchors=answers.get(key, {}),
        )
        for key, row in sorted(prompts.items())
    }
    plan_night = PlanNight(night.draw.day, str(run.judge_id), criteria, versions)
    return NightData(plan_night, run.judge, _labels(answers, prompts))


def _counts(run: Run) -> list[tuple[int, str, str, int, int, int]]:
    rows = DayCount.objects.filter(run=run).order_by().values("criterion", "topic__key", "version")
    sums = rows.annotate(n=Sum("chats"), good=Sum("passed"), bad=Sum("failed"))
    return list(sums.values_list("criterion", "topic__key", "version", "n", "good", "bad"))


def _strata(
    rows: Sequence[tuple[int, str, str, int, int, int]], draw: SampleDraw
) -> dict[int, list[Stratum]]:
    """Return the topics of each criterion, all versions of the bot together.

    A judged chat stands for the topic's chats by the judged ones.
    """
    sizes = {one["topic"]: one["size"] for one in draw.strata}
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for criterion, topic, _, *counts in rows:
        sums[criterion, topic] = [a + b for a, b in zip(sums[criterion, topic], counts, strict=True)]
    strata: dict[int, list[Stratum]] = defaultdict(list)
    for (criterion, topic), (n, good, bad) in sums.items():
        if good + bad:
            strata[criterion].append(Stratum(good, good + bad, max(1.0, sizes.get(topic, n) / n)))
    return strata


def _anchor_answers(night: NightlyRun, prompts: Mapping[int, JudgePrompt]) -> dict[int, dict[int, bool]]:
    """Whether each anchor passed, by criterion and chat. Another judge's run says nothing of this one."""
    anchors = night.anchor_run
    if anchors is None or night.run is None or anchors.judge_id != night.run.judge_id:
        return {}
    verdicts = Verdict.objects.filter(run=anchors, state=Verdict.State.READ, value__isnull=False)
    found: dict[int, dict[int, bool]] = defaultdict(dict)
    for criterion, chat, value in verdicts.order_by().values_list("criterion", "chat", "value"):
        if criterion in prompts:
            found[criterion][chat] = value == prompts[criterion].criterion_version.passes_when
    return found


def _labels(answers: Mapping[int, Mapping[int, bool]], prompts: Mapping[int, JudgePrompt]) -> Pairs:
    """How many anchors the judge answers as the consensus does, of those with one."""
    chats = {chat for some in answers.values() for chat in some}
    rows = Consensus.objects.filter(criterion__in=list(answers), chat__in=chats)
    found: Pairs = defaultdict(lambda: [0, 0])
    decided = rows.filter(state__in=Consensus.ANSWERED).order_by()
    for criterion, chat, state in decided.values_list("criterion", "chat", "state"):
        good = answers[criterion].get(chat)
        if good is None:
            continue
        passed = (state == Consensus.State.TRUE) == prompts[criterion].criterion_version.passes_when
        found[str(criterion)][0] += good == passed
        found[str(criterion)][1] += 1
    return dict(found)


# ---------- the weekly audit


@dataclass(frozen=True)
class AuditWeek:
    """A week whose random share is labelled: rates by criterion."""

    week: date
    rates: Mapping[int, Sequence[Stratum]]

    @property
    def last(self) -> date:
        """Its last day."""
        return self.week + timedelta(days=6)

    @property
    def counts(self) -> Pairs:
        """Passing and labelled chats by criterion."""
        return {
            str(key): [sum(row.passed for row in rows), sum(row.answers for row in rows)]
            for key, rows in self.rates.items()
        }


def due_weeks(plan: SamplePlan, *, now: datetime) -> list[date]:
    """Return the Mondays of the weeks whose labels are complete, or overdue, and not evaluated yet."""
    today = timezone.localdate(now)
    draws = plan.draws.filter(job__isnull=False, day__lt=monday(today))
    last = WatchStep.objects.filter(plan=plan, week__isnull=False).order_by("-week").first()
    if last is not None and last.week is not None:
        draws = draws.filter(day__gte=last.week + WEEK)
    jobs: dict[date, list[int]] = defaultdict(list)
    for day, job in draws.order_by("day").values_list("day", "job"):
        jobs[monday(day)].append(job)
    left = Assignment.objects.filter(
        Q(state=Assignment.State.OPEN) | Q(state=Assignment.State.LEASED),
        job__in=[job for some in jobs.values() for job in some],
    ).exclude(job__state=LabelingJob.State.CLOSED)
    waiting = set(left.order_by().values_list("job", flat=True).distinct())
    due = []
    for week, some in jobs.items():
        if waiting.intersection(some) and today < week + WEEK + LABELS_WAIT:
            break
        due.append(week)
    return due


def audit_week(plan: SamplePlan, week: date) -> AuditWeek:
    """Return the consensus on a week's random share, weighted by the probability to be in it; two queries.

    Without chats that are holdout by now: authors read the figures.
    """
    sampled = SampledChat.objects.filter(
        draw__plan=plan,
        draw__day__gte=week,
        draw__day__lt=week + WEEK,
        label_source=SampledChat.Source.AUDIT,
        audit_probability__gt=0,
    ).exclude(chat__in=holdout_chats())
    chances = {chat: chance or 1.0 for chat, chance in sampled.values_list("chat", "audit_probability")}
    newest = CriterionVersion.objects.filter(criterion__rubric=plan.rubric_id).order_by("number")
    passes_when = dict(newest.values_list("criterion", "passes_when"))
    rows = Consensus.objects.filter(
        chat__in=list(chances),
        criterion__in=list(passes_when),
        state__in=Consensus.ANSWERED,
    )
    sums: dict[int, dict[float, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for criterion, chat, state in rows.order_by().values_list("criterion", "chat", "state"):
        pair = sums[criterion][1 / chances[chat]]
        pair[0] += (state == Consensus.State.TRUE) == passes_when[criterion]
        pair[1] += 1
    rates = {
        key: [Stratum(good, n, weight) for weight, (good, n) in sorted(some.items())]
        for key, some in sums.items()
    }
    return AuditWeek(week, rates)


# ---------- gaps


@dataclass(frozen=True)
class Gap:
    """Too little was judged in seven nights; `n` of at least `needed`, and the topic's chats.

    `raises` : else it only keeps an alert open: a rare topic would raise and end one every few days.
    """

    kind: str
    criterion: int | None
    topic: int | None
    n: int
    needed: int
    chats: int | None = None
    raises: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return it as an alert stores it."""
        return {"n": self.n, "needed": self.needed, "chats": self.chats}


def gaps(plan: SamplePlan, *, day: date, criteria: Sequence[int], row: AlertSettings) -> list[Gap]:
    """Return what the seven nights up to a day judged too little of; three queries.

    None in a plan's first week, nor where there were too few chats to judge.
    """
    first = day - timedelta(days=6)
    draws = list(plan.draws.filter(day__gte=first, day__lte=day).only("day", "strata"))
    if not draws or not plan.draws.filter(day__lte=first).exists():
        return []
    runs = NightlyRun.objects.filter(draw__in=draws, run__isnull=False).values("run")
    counts = DayCount.objects.filter(run__in=runs).order_by()
    answers = dict(
        counts.values("criterion").annotate(n=Sum(F("passed") + F("failed"))).values_list("criterion", "n")
    )
    found = [
        Gap("verdicts", key, None, answers.get(key, 0), row.fewest_verdicts)
        for key in criteria
        if answers.get(key, 0) < row.fewest_verdicts
    ]
    return found + _topic_gaps(draws, counts, row)


def _topic_gaps(draws: Sequence[SampleDraw], counts: Any, row: AlertSettings) -> list[Gap]:
    chats: dict[str, int] = defaultdict(int)
    for draw in draws:
        for one in draw.strata:
            chats[one["topic"]] += one["size"]
    judged: dict[int, int] = defaultdict(int)
    by_criterion = counts.values("topic", "criterion").annotate(n=Sum("chats"))
    for topic, _, n in by_criterion.values_list("topic", "criterion", "n"):
        judged[topic] = max(judged[topic], n)
    found = []
    for topic in Topic.objects.filter(key__in=list(chats)):
        n, whole = judged[topic.pk], chats[topic.key]
        if whole >= row.fewest_chats and n < row.fewest_chats:
            kind, raises = "chats" if n else "coverage", whole >= OFTEN * row.fewest_chats
            found.append(Gap(kind, None, topic.pk, n, row.fewest_chats, whole, raises))
    return found
