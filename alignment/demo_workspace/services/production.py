"""The demo's production: a bot sends chats, a plan samples every night, the simulated judge judges them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from alignment.alerts.services.evaluation import plan_work
from alignment.demo_workspace.core.production import DAYS_A_WEEK, ProductionChat, weeks_begin
from alignment.demo_workspace.core.raters import label_line
from alignment.demo_workspace.core.scenes import Dice
from alignment.demo_workspace.queries import DemoAnswers, demo_answers, production, production_settings
from alignment.demo_workspace.services import history
from alignment.demo_workspace.services.demo_workspace import clock, jsonl
from alignment.demo_workspace.services.simulated_runs import Memory, run_simulate
from alignment.demo_workspace.services.team import Team, slots_submit, topics_name
from alignment.nightly_labels.services import night_job_open
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import Run
from evaluation.nightly.services import (
    JudgeChoice,
    anchors_choice,
    night_choice,
    night_store,
    nightly_plan_save,
)
from evaluation.runs.services.runs import run_plan
from labeling.ingest.services.chats import chats_ingest
from labeling.jobs.services import job_close
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.labels import Label, LabelingJob
from labeling.models.people import Rater, User
from labeling.models.sampling import SamplePlan
from labeling.sampling.queries import SampleSize
from labeling.sampling.services import PlanSettings, draw_night
from labeling.transfer.services.labels import labels_import

JUDGE, ANCHORS = "Nightly judge", "Anchor chats"
# One call a chat: the cheapest way to ask every criterion.
RECIPE = JudgeSpec("direct", grouping="rubric")
# The bot sends the day's chats before midnight; the sample follows soon after the plan's time.
SENT, SAMPLED, OPENED, LABELLED = time(23, 15), time(2, 4), time(2, 20), time(9, 10)
# The raters have not come to the newest samples yet.
NIGHTS_UNLABELLED = 2
# The lead has closed the jobs of earlier nights; on later ones two raters answered, and some answers wait.
NIGHTS_OPEN = 4


@dataclass(slots=True)
class Production:
    """The weeks of a demo: whose they are, and their days up to yesterday.

    With `most`, only so many chats a day.
    """

    team: Team
    lead: User
    now: datetime
    most: int | None = None
    settings: Mapping[str, Any] = field(default_factory=production_settings)

    @property
    def last(self) -> date:
        """The newest day that a plan has sampled by now."""
        local = timezone.localtime(self.now)
        return local.date() - timedelta(days=1 if local.time() >= OPENED else 2)

    @property
    def first(self) -> date:
        """The first day, a Monday."""
        return weeks_begin(self.last)

    def days(self, week: int) -> Iterator[tuple[date, Sequence[ProductionChat]]]:
        """Yield the days of a week with their chats."""
        for number in range((week - 1) * DAYS_A_WEEK, week * DAYS_A_WEEK):
            if (day := self.first + timedelta(days=number)) <= self.last:
                yield day, production()[number][: self.most]

    def seed(self, day: date) -> int:
        """Return the seed of what is drawn for a day."""
        return int(self.settings["seed"]) + (day - self.first).days

    def ends(self, week: int) -> datetime:
        """When the last night of a week is over."""
        newest = max(day for day, _ in self.days(week))
        return moment(newest + timedelta(days=1), OPENED)

    def answers(self, week: int) -> DemoAnswers:
        """Return what the judge answers in a week: its model changes once."""
        drift = self.settings["drift"]
        if week < drift["week"]:
            return demo_answers()
        return demo_answers().drifted(drift["criterion"], miss=drift["miss"], alarm=drift["alarm"])


def moment(day: date, at: time) -> datetime:
    """Return a time of a day in the site's time zone."""
    return timezone.make_aware(datetime.combine(day, at))


# ---------- the judge and the plan ----------


def nightly_judge_run(lead: User) -> Run:
    """Run the nightly judge over the labelled chats, so that its errors are known."""
    run = history.run_ensure(JUDGE, chat_set=history.support_set(), by=lead, judge=RECIPE)
    if not JudgeProfile.objects.filter(name=JUDGE).exists():
        profile = profile_save(name=JUDGE, choice=RECIPE, by=lead)
        Judge.objects.filter(pk=run.judge_id, profile=None).update(profile=profile)
    return run


@transaction.atomic
def anchors_ensure(count: int) -> ChatSet:
    """Create the set of labelled chats that the judge answers every night: dev chats, as far as they go."""
    anchor_set, created = ChatSet.objects.get_or_create(
        name=ANCHORS, defaults={"rubric": history.support_set().rubric}
    )
    if created:
        members = sorted(
            history.support_set().members.all(), key=lambda one: (one.split != Split.DEV, one.position)
        )
        ChatSetMember.objects.bulk_create(
            ChatSetMember(chat_set=anchor_set, chat_id=one.chat_id, split=one.split, position=one.position)
            for one in members[:count]
        )
    return anchor_set


@transaction.atomic
def plan_ensure(show: Production) -> SamplePlan:
    """Let the lead make the plan, on the day before its first sample."""
    wanted = show.settings["plan"]
    found = SamplePlan.objects.filter(name=wanted["name"]).first()
    if found is not None:
        return found
    settings = PlanSettings(
        name=wanted["name"],
        rubric=history.support_set().rubric,
        size=SampleSize(wanted["chats"], wanted["rule"], wanted["minimum"]),
        starts_at=time.fromisoformat(wanted["starts_at"]),
        audit_share=wanted["audit_share"],
        raters=list(User.objects.filter(username__in=wanted["raters"])),
    )
    anchor_set = anchors_ensure(wanted["anchors"])
    judge = JudgeChoice(
        profile=JudgeProfile.objects.get(name=JUDGE),
        budget_usd=Decimal(wanted["budget_usd"]),
        anchor_set=anchor_set,
        anchors=anchor_set.members.count(),
    )
    return nightly_plan_save(settings=settings, judge=judge, by=show.lead)


# ---------- a week ----------


@transaction.atomic
def week_ensure(show: Production, week: int) -> None:
    """Let a week of production happen, as far as it is over: chats, samples, verdicts and labels."""
    plan = SamplePlan.objects.select_related("rubric").get(name=show.settings["plan"]["name"])
    chosen = NightlyJudge.objects.select_related("profile", "anchor_set").get(plan=plan)
    judge, answers = nightly_judge_run(show.lead).judge, show.answers(week)
    drawn = set(plan.draws.values_list("day", flat=True))
    nights: list[tuple[date, LabelingJob | None]] = []
    anchors: Memory = {}
    for day, chats in show.days(week):
        if day in drawn:
            continue
        with clock(moment(day, SENT)):
            midnight = moment(day, time())
            rows = [chat.as_line(midnight) for chat in chats]
            chats_ingest(rows=rows, source=show.settings["source"], origin=Chat.Origin.DEMO)
            topics_name()
        with clock(moment(day + timedelta(days=1), SAMPLED)):
            draw = draw_night(plan=plan, day=day, spreads={}, seed=show.seed(day))
            if draw.chat_set is None:
                continue
            run = run_plan(chat_set=draw.chat_set, judge=judge, run=night_choice(draw, chosen), by=show.lead)
            night = night_store(draw, run=run)
            run_simulate(run, answers=answers)
            _judge_anchors(night, chosen, answers, anchors)
        with clock(moment(day + timedelta(days=1), OPENED)):
            nights.append((day, night_job_open(draw=draw, run=run)))
            plan_work(plan, now=timezone.now())
    last = show.last - timedelta(days=NIGHTS_UNLABELLED)
    _label(show, [(day, job) for day, job in nights if job and day <= last])


def _judge_anchors(night: NightlyRun, chosen: NightlyJudge, answers: DemoAnswers, memory: Memory) -> None:
    if chosen.anchor_set is None or night.run is None:
        return
    draw, judge = night.draw, night.run.judge
    night.anchor_run = run_plan(
        chat_set=chosen.anchor_set, judge=judge, run=anchors_choice(draw, chosen), by=night.run.started_by
    )
    night.save(update_fields=["anchor_run"])
    run_simulate(night.anchor_run, answers=answers, memory=memory)


def _label(show: Production, jobs: Sequence[tuple[date, LabelingJob]]) -> None:
    """Let the raters label the audited chats of these nights, each on the morning after."""
    if not jobs:
        return
    with jsonl(list(_labels(show, jobs)), name="audit_labels.jsonl") as path:
        labels_import(path=path, source=Label.Source.DEMO, rater_kind=Rater.Kind.DEMO)
    for day, job in jobs:
        slots_submit(job, list(job.raters.order_by("name")))
        if day <= show.last - timedelta(days=NIGHTS_OPEN):
            job_close(job=job, by=show.lead)


def _labels(show: Production, jobs: Sequence[tuple[date, LabelingJob]]) -> Iterator[dict[str, Any]]:
    truth = {chat.id: chat for day in production() for chat in day}
    raters = [rater for rater in show.team.raters if rater.account in show.settings["plan"]["raters"]]
    dice = Dice(show.seed(jobs[0][0]))
    second = next(rater for rater in show.team.raters if rater.account == show.settings["second"])
    for day, job in jobs:
        at = moment(day + timedelta(days=1), LABELLED)
        looks = [second] if day > show.last - timedelta(days=NIGHTS_OPEN) else []
        chats = job.assignments.order_by("position").values_list("chat__external_id", flat=True)
        for number, chat in enumerate(chats):
            for rater in (raters[(number + show.seed(day)) % len(raters)], *looks):
                for key in truth[chat].truth:
                    at += timedelta(seconds=max(2, dice.number(rater.seconds // 2, rater.seconds * 3 // 2)))
                    yield label_line(truth[chat], key, rater, dice, show.team.settings, at)
