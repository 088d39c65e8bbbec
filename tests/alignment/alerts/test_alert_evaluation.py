"""Which nights and weeks are evaluated, what is too little judged, and what ends an alert."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone

from alignment.alerts.core.attribution import Cause, Change, Stream
from alignment.alerts.core.findings import Finding, Signal
from alignment.alerts.core.plan_watch import Step, Stratum, monday
from alignment.alerts.queries.nights import (
    Gap,
    audit_week,
    due_nights,
    due_weeks,
    gaps,
    night_data,
    watch_settings,
)
from alignment.alerts.services.alerts import News, drifts_end, drifts_raise, gaps_sync
from alignment.alerts.services.evaluation import STATES_KEPT, alerts_work
from alignment.models.alerts import Alert, AlertSettings, WatchStep
from alignment.nightly_labels.services import night_jobs_work
from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Run, RunChat, Unit, Verdict
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Assignment, Consensus, LabelingJob
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion, Rubric
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_rubric, make_set, make_user
from tests.factories.verdicts import make_judge, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite")


@pytest.fixture
def polite(rubric: Rubric) -> Criterion:
    return rubric.criteria.get()


@pytest.fixture
def plan(rubric: Rubric, lead_user: User) -> SamplePlan:
    return make_plan(rubric, by=lead_user, chats=6)


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


def judged_night(
    plan: SamplePlan, judge: Judge, *, back: int = 1, failed: int = 0, state: str = "done", **topics: int
) -> NightlyRun:
    """A night whose judge failed the first chats of the sample."""
    day = yesterday() - timedelta(days=back - 1)
    arrived(topics or {"refund": 10}, day=day)
    draw = draw_night(plan=plan, day=day, spreads={}, seed=4)
    assert draw.chat_set is not None
    run = make_run(judge, draw.chat_set, state=state)
    chats = list(draw.chat_set.members.order_by("position").values_list("chat", flat=True))
    criterion, now = plan.rubric.criteria.get(), timezone.now()
    Unit.objects.bulk_create(Unit(run=run, chat_id=chat, group=0, state="done") for chat in chats)
    RunChat.objects.bulk_create(RunChat(run=run, chat_id=chat, split="dev") for chat in chats)
    Verdict.objects.bulk_create(
        Verdict(
            run=run, chat_id=chat, criterion=criterion, state="read", value=place >= failed, stored_at=now
        )
        for place, chat in enumerate(chats)
    )
    days_recount(run.pk)
    return NightlyRun.objects.create(draw=draw, run=run, tried_at=now)


def test_a_night_is_evaluated_once_after_its_run_has_ended(plan: SamplePlan, judge: Judge) -> None:
    night = judged_night(plan, judge, state="running")
    alerts_work()
    assert not WatchStep.objects.exists()
    Run.objects.update(state="done")
    for _ in range(2):
        alerts_work()
    step = WatchStep.objects.get()
    assert (step.draw, step.day) == (night.draw, night.draw.day)
    assert step.counts["judged"] == {str(plan.rubric.criteria.get().pk): [6, 6]}


def test_a_later_night_waits_for_the_one_before_for_a_day_at_most(plan: SamplePlan, judge: Judge) -> None:
    stopped = judged_night(plan, judge, back=2, state="paused")
    judged_night(plan, judge, back=1)
    assert due_nights(plan, now=timezone.now()) == []
    SampleDraw.objects.filter(pk=stopped.draw_id).update(drawn_at=timezone.now() - timedelta(hours=25))
    assert next(iter(due_nights(plan, now=timezone.now()))).draw_id == stopped.draw_id
    alerts_work()
    assert WatchStep.objects.count() == 2


def test_the_night_waits_for_its_anchors(plan: SamplePlan, judge: Judge) -> None:
    night = judged_night(plan, judge)
    night.anchor_run = Run.objects.create(judge=judge, state="running", purpose="anchors")
    night.save()
    assert due_nights(plan, now=timezone.now()) == []


def test_a_judged_chat_stands_for_the_chats_of_its_topic(
    plan: SamplePlan, judge: Judge, polite: Criterion
) -> None:
    night = judged_night(plan, judge, refund=20, other=10)
    assert night.run is not None
    data = night_data(night, run=night.run)
    assert data.night.criteria[polite.pk].judged == [Stratum(2, 2, 5.0), Stratum(4, 4, 5.0)]


def release(night: NightlyRun, version: str, *, chats: int) -> None:
    """So many chats of a night are of this version of the bot."""
    assert night.run is not None
    some = list(night.run.run_chats.order_by("pk").values_list("chat", flat=True)[:chats])
    Chat.objects.filter(pk__in=some).update(metadata={"bot_version": version})
    days_recount(night.run.pk)


def test_all_versions_of_the_bot_count_together(plan: SamplePlan, judge: Judge, polite: Criterion) -> None:
    night = judged_night(plan, judge, failed=1)
    release(night, "5.2", chats=2)
    assert night.run is not None
    data = night_data(night, run=night.run)
    assert data.night.versions == {"": 4, "5.2": 2}
    (stratum,) = data.night.criteria[polite.pk].judged
    assert (stratum.passed, stratum.answers) == (5, 6)
    assert stratum.weight == pytest.approx(10 / 6)


def test_the_night_on_which_a_version_goes_live_is_marked_once(plan: SamplePlan, judge: Judge) -> None:
    for back, version in ((4, "5.1"), (3, "5.1"), (2, "5.2"), (1, "5.2")):
        release(judged_night(plan, judge, back=back), version, chats=6)
    alerts_work()
    assert [step.counts["bots"] for step in WatchStep.objects.order_by("pk")] == [[], [], ["5.2"], []]


def test_only_the_newest_states_are_kept(plan: SamplePlan, judge: Judge) -> None:
    for back in range(6, 0, -1):
        judged_night(plan, judge, back=back)
    alerts_work()
    steps = WatchStep.objects.order_by("-pk")
    assert [bool(step.state) for step in steps] == [True] * STATES_KEPT + [False] * (6 - STATES_KEPT)
    assert all(step.counts["judged"] for step in steps)


# ---- the weekly audit


@pytest.fixture
def audited(plan: SamplePlan, judge: Judge) -> date:
    """The Monday of a week with one labelled night, whose labels are complete."""
    plan.audit_share, plan.overlap = 1.0, 1
    plan.save()
    plan.raters.add(make_user("mara", Role.RATER))
    back = timezone.localdate().weekday() + 3  # in the week before this one
    judged_night(plan, judge, back=back, failed=2)
    night_jobs_work()
    Assignment.objects.update(state="submitted")
    return monday(timezone.localdate() - timedelta(days=back))


def test_a_week_is_due_once_its_labels_are_there(plan: SamplePlan, audited: date) -> None:
    now = timezone.now()
    assert due_weeks(plan, now=now) == [audited]
    Assignment.objects.filter(pk=Assignment.objects.earliest("pk").pk).update(state="open")
    assert due_weeks(plan, now=now) == []
    assert due_weeks(plan, now=now + timedelta(days=21)) == [audited]
    LabelingJob.objects.update(state="closed")
    assert due_weeks(plan, now=now) == [audited]
    alerts_work()
    assert WatchStep.objects.filter(week=audited).count() == 1
    assert due_weeks(plan, now=now) == []


def test_a_weeks_rates_are_the_consensus_by_probability(
    plan: SamplePlan, audited: date, polite: Criterion
) -> None:
    chats = list(plan.draws.get().chats.values_list("chat", flat=True))
    for place, chat in enumerate(chats):
        state = ("false", "na", "unresolved")[place] if place < 3 else "true"
        Consensus.objects.update_or_create(
            chat_id=chat, criterion=polite, defaults={"state": state, "by": "majority"}
        )
    found = audit_week(plan, audited)
    ((stratum,),) = found.rates.values()
    assert (stratum.passed, stratum.answers) == (3, 4)
    assert stratum.weight == pytest.approx(10 / 6)
    make_set(plan.rubric, Chat.objects.get(pk=chats[-1]), name="held out", split="holdout")
    ((stratum,),) = audit_week(plan, audited).rates.values()
    assert (stratum.passed, stratum.answers) == (2, 3)  # authors read the figures


# ---- too little judged


def frame(night: NightlyRun, **sizes: int) -> SampleDraw:
    """A night whose frame also had so many chats of these topics, none of them judged."""
    draw = night.draw
    rows = [{"topic": key, "size": size, "n": 0, "probability": 0.0} for key, size in sizes.items()]
    draw.strata = [*draw.strata, *rows]
    draw.save()
    for key in sizes:
        Topic.objects.get_or_create(key=key, defaults={"name": key})
    return draw


def test_gaps_are_raised_after_a_week(plan: SamplePlan, judge: Judge, polite: Criterion) -> None:
    row = AlertSettings(fewest_verdicts=20, fewest_chats=5)
    first = frame(judged_night(plan, judge, back=1, refund=9), returns=8, rare=4)
    assert gaps(plan, day=first.day, criteria=[polite.pk], row=row) == []  # in the first week
    judged_night(plan, judge, back=7, refund=9)
    found = gaps(plan, day=first.day, criteria=[polite.pk], row=row)
    assert [(one.kind, one.n, one.needed, one.chats) for one in found] == [
        ("verdicts", 12, 20, None),
        ("coverage", 0, 5, 8),
    ]


def test_a_topic_with_few_chats_raises_none_and_keeps_one_open(plan: SamplePlan, judge: Judge) -> None:
    topic = Topic.objects.create(key="returns", name="Returns")
    news = News()
    for chats, raises in ((8, False), (12, True), (8, False)):
        found = [Gap("coverage", None, topic.pk, 0, 5, chats, raises)]
        gaps_sync(plan, found, judge=judge, day=yesterday(), news=news)
    assert (len(news.raised), news.ended) == (1, [])
    alert = Alert.objects.get()
    gaps_sync(plan, [Gap("chats", None, topic.pk, 2, 5, 12)], judge=judge, day=yesterday(), news=news)
    alert.refresh_from_db()
    assert (alert.kind, alert.signals[0]["n"], len(news.raised)) == ("chats", 2, 1)  # no second alert


def test_a_gap_ends_after_seven_nights_in_a_row_without_it(
    plan: SamplePlan, judge: Judge, polite: Criterion
) -> None:
    gap, news = Gap("verdicts", polite.pk, None, 90, 100), News()
    for found in ([gap], *[[]] * 6, [gap], *[[]] * 6):
        gaps_sync(plan, found, judge=judge, day=yesterday(), news=news)
    assert (len(news.raised), news.ended) == (1, [])
    gaps_sync(plan, [], judge=judge, day=yesterday(), news=news)
    assert [one.ended_because for one in news.ended] == ["Enough was judged again."]


# ---- alerts of drifts


def finding(criterion: Criterion | None, cause: Cause, *, nights: int = 1) -> Finding:
    signal = Signal(Stream.JUDGED, Change.LOWER, 4.0, 0.9, 0.8, nights)
    return Finding(criterion.pk if criterion else None, cause, (signal,))


def test_an_unclear_alert_becomes_that_of_its_cause(
    plan: SamplePlan, judge: Judge, polite: Criterion
) -> None:
    news, day = News(), yesterday()
    for _ in range(2):
        drifts_raise(plan, [finding(polite, Cause.UNCLEAR)], judge=judge, day=day, news=news)
    row = Alert.objects.get()
    assert (row.cause, row.named_at, len(news.raised)) == ("unclear", None, 1)
    drifts_raise(plan, [finding(polite, Cause.BOT)], judge=judge, day=day, news=news)
    row.refresh_from_db()
    assert (row.cause, row.named_day, len(news.raised)) == ("bot", day, 2)
    both = [finding(polite, Cause.JUDGE), finding(polite, Cause.BOT)]
    drifts_raise(plan, both, judge=judge, day=day, news=news)
    assert set(Alert.objects.values_list("cause", flat=True)) == {"bot", "judge"}


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({"questions": frozenset({1})}, set()),
        ({"judges": frozenset({1})}, {"bot"}),
        ({}, {"bot", "judge", "unclear"}),
    ],
)
def test_a_version_ends_the_alerts_of_what_it_changed(
    plan: SamplePlan, judge: Judge, polite: Criterion, changed: dict[str, Any], left: set[str]
) -> None:
    for cause in (Cause.BOT, Cause.JUDGE, Cause.UNCLEAR):
        drifts_raise(plan, [finding(polite, cause)], judge=judge, day=yesterday(), news=News())
        Alert.objects.filter(cause="unclear").update(subject="kept apart")
    own: dict[str, Any] = {name: frozenset({polite.pk}) for name in changed}
    drifts_end(plan, Step({"criteria": {str(polite.pk): {}}}, **own), News())
    assert set(Alert.objects.standing().values_list("cause", flat=True)) == left


def test_a_rate_that_is_back_ends_the_alerts_of_the_bot(
    plan: SamplePlan, judge: Judge, polite: Criterion
) -> None:
    for cause in (Cause.BOT, Cause.JUDGE):
        drifts_raise(plan, [finding(polite, cause)], judge=judge, day=yesterday(), news=News())
    drifts_end(plan, Step({"criteria": {str(polite.pk): {}}}), News(), back={polite.pk})
    assert set(Alert.objects.standing().values_list("cause", flat=True)) == {"judge"}


@pytest.mark.parametrize(
    ("cause", "live", "named"),
    [(Cause.BOT, 3, "5.2"), (Cause.UNCLEAR, 3, "5.2"), (Cause.JUDGE, 3, ""), (Cause.BOT, 9, "")],
)
def test_a_change_of_the_bot_names_the_version_that_went_live_around_its_start(
    plan: SamplePlan, judge: Judge, polite: Criterion, cause: Cause, live: int, named: str
) -> None:
    """The change began three nights ago."""
    for back in range(10, 0, -1):
        draw = draw_night(plan=plan, day=yesterday() - timedelta(days=back - 1), spreads={})
        bots = ["5.2"] if back == live else []
        WatchStep.objects.create(plan=plan, draw=draw, day=draw.day, counts={"bots": bots})
    found = finding(polite, cause, nights=3)
    drifts_raise(plan, [found], judge=judge, day=yesterday(), news=News())
    row = Alert.objects.get()
    assert (row.bot_version, row.bot_live_on) == (named, row.began_on if named else None)


def test_a_change_began_where_its_signal_dates_it(plan: SamplePlan, judge: Judge, polite: Criterion) -> None:
    for back in (3, 2, 1):
        judged_night(plan, judge, back=back)
    alerts_work()
    drifts_raise(plan, [finding(polite, Cause.BOT, nights=2)], judge=judge, day=yesterday(), news=News())
    assert Alert.objects.get().began_on == yesterday() - timedelta(days=1)


def test_the_family_has_the_criteria_of_every_active_plan(plan: SamplePlan, lead_user: User) -> None:
    make_plan(make_rubric("clear", "short", name="Second"), by=lead_user, name="Other")
    assert watch_settings().family == 3
    SamplePlan.objects.filter(name="Other").update(state="paused")
    assert watch_settings().family == 1
