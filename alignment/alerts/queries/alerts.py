"""Alerts as lists, pages, tasks and the API show them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.urls import reverse
from django.utils import timezone

from alignment.models.alerts import Alert, AlertMute, WatchStep
from common.inbox.subjects import Subject
from evaluation.models.nightly import NightlyJudge
from labeling.models.chats import ChatSetMember, Split
from labeling.models.people import User
from labeling.people.queries.visibility import reads_holdout

SHOWN = ("open", "ended", "all")
STREAMS = {"judged": "Judged sample", "anchors": "Anchor chats", "audit": "Labels of the random share"}
CHANGES = {
    "lower": "passing share fell",
    "higher": "passing share rose",
    "stricter": "more passing anchors fail",
    "more_lenient": "more failing anchors pass",
    "less_consistent": "more anchors change their answer",
}
LONGEST_EVIDENCE = 9  # powers of ten that are written out


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One stream of an alert; without `figures` its numbers are for leads alone."""

    stream: str
    name: str
    change: str
    before: float | None
    now: float | None
    odds: str
    figures: bool = True


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert as pages show it."""

    alert: Alert
    muted: bool
    signals: Sequence[SignalRow]

    @property
    def about(self) -> str:
        """What it is about."""
        alert = self.alert
        if alert.criterion is not None:
            return alert.criterion.name
        return f"Topic {alert.topic.name}" if alert.topic is not None else "All criteria"

    @property
    def words(self) -> str:
        """What has happened."""
        alert = self.alert
        if alert.kind == Alert.Kind.DRIFT:
            return alert.get_cause_display()
        return alert.get_kind_display()

    @property
    def since(self) -> str:
        """When the change began, with the version of the bot that went live then."""
        alert = self.alert
        if alert.bot_live_on is None:
            return f"since about {_day(alert.began_on)}"
        if alert.bot_live_on == alert.began_on:
            return f"since {_day(alert.began_on)}, the day bot {alert.bot_version} went live"
        live = f"bot {alert.bot_version} went live on {_day(alert.bot_live_on)}"
        return f"since about {_day(alert.began_on)}; {live}"

    @property
    def shift(self) -> str:
        """How far the rate moved, of the first signal that is one."""
        for one in self.signals:
            if one.stream != "anchors" and one.before is not None and one.now is not None:
                points = max(1, abs(round(100 * (one.now - one.before))))
                moved = "fell" if one.now < one.before else "rose"
                of = "raters’" if one.stream == "audit" else "judged"
                return f"The {of} passing share {moved} by {points} point{'' if points == 1 else 's'}"
        return "The passing share moved"

    @property
    def title(self) -> str:
        """Subject and words on one line."""
        return f"{self.about}: {self.words[:1].lower()}{self.words[1:]}"

    @property
    def detail(self) -> str:
        """One sentence with the figures that the user may see."""
        if self.alert.kind != Alert.Kind.DRIFT:
            return self._gap()
        shown = [
            one for one in self.signals if one.figures and one.before is not None and one.now is not None
        ]
        parts = [f"{one.name}: {one.change}, {one.before:.2f} to {one.now:.2f}" for one in shown]
        return f"{'; '.join(parts or [f'{one.name}: {one.change}' for one in self.signals])}."

    def _gap(self) -> str:
        gap = self.alert.signals[0]
        if self.alert.kind == Alert.Kind.VERDICTS:
            return f"{gap['n']:,} applicable verdicts in seven nights. Needed: {gap['needed']:,}."
        return f"{gap['n']:,} of {gap['chats']:,} chats judged in seven nights. Needed: {gap['needed']:,}."

    @property
    def state(self) -> str:
        """Return a word for programs: open, acknowledged, snoozed, muted or ended."""
        if self.alert.ended_at is not None:
            return "ended"
        if self.alert.snoozed_until and self.alert.snoozed_until > timezone.localdate():
            return "snoozed"
        if self.muted:
            return "muted"
        return "acknowledged" if self.alert.acknowledged_at else "open"

    @property
    def state_label(self) -> str:
        """Return the state in words."""
        until = self.alert.snoozed_until
        if self.state == "snoozed" and until:
            return f"Snoozed until {until.day} {until:%b}"
        return self.state.capitalize()


def _day(day: date) -> str:
    return f"{day.day} {day:%b}"


def alert_list(shown: str = "open") -> QuerySet[Alert]:
    """Return alerts with what a row needs: the open ones first, those not acknowledged before the others."""
    rows = Alert.objects.select_related(
        "criterion", "topic", "plan", "judge", "acknowledged_by", "snoozed_by", "accepted_by"
    )
    if shown == "open":
        rows = rows.filter(ended_at=None)
    elif shown == "ended":
        rows = rows.filter(ended_at__isnull=False)
    place = Case(
        When(ended_at__isnull=False, then=Value(2)),
        When(acknowledged_at__isnull=False, then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return rows.annotate(place=place).order_by("place", "-pk")


def alert_rows(alerts: Sequence[Alert], *, user: User | AnonymousUser) -> list[AlertRow]:
    """Return rows of these alerts; two queries."""
    muted = set(AlertMute.objects.values_list("criterion", flat=True))
    hidden = _hidden_plans({row.plan_id for row in alerts}, user=user)
    return [
        AlertRow(row, row.criterion_id in muted, _signals(row, figures=row.plan_id not in hidden))
        for row in alerts
    ]


def _hidden_plans(plans: Collection[int], *, user: User | AnonymousUser) -> set[int]:
    """Return the plans whose anchors' figures the user may not see: a chat of theirs is holdout."""
    if reads_holdout(user=user):
        return set()
    held_out = ChatSetMember.objects.filter(
        split=Split.HOLDOUT, chat__memberships__chat_set=OuterRef("anchor_set")
    )
    return set(NightlyJudge.objects.filter(Exists(held_out), plan__in=plans).values_list("plan", flat=True))


def anchor_figures(alert: Alert, *, user: User | AnonymousUser) -> bool:
    """Whether the user may see figures of the plan's anchors; one query."""
    return not _hidden_plans([alert.plan_id], user=user)


def _signals(alert: Alert, *, figures: bool) -> list[SignalRow]:
    if alert.kind != Alert.Kind.DRIFT:
        return []
    return [
        SignalRow(
            one["stream"],
            STREAMS[one["stream"]],
            CHANGES[one["change"]],
            one["before"],
            one["now"],
            _odds(one["evidence"]),
            figures=figures or one["stream"] != "anchors",
        )
        for one in alert.signals
    ]


def _odds(evidence: float) -> str:
    """Say how strong the evidence is against no change.

    >>> _odds(3.2), _odds(40.0)
    ('1,600 : 1', 'over 10⁹ : 1')
    """
    if evidence > LONGEST_EVIDENCE:
        return "over 10⁹ : 1"
    number = 10 ** max(0.0, evidence)
    return f"{round(number, -2) if number > 1000 else round(number):,.0f} : 1"


# ---------- who needs to act


def open_alerts() -> QuerySet[Alert]:
    """Return the alerts that nobody has acknowledged, snoozed or muted, newest first."""
    muted = AlertMute.objects.values("criterion")
    awake = Q(snoozed_until=None) | Q(snoozed_until__lte=timezone.localdate())
    rows = alert_list().filter(awake, acknowledged_at=None)
    return rows.exclude(criterion__isnull=False, criterion__in=muted)


def panel_rows(*, user: User | AnonymousUser, limit: int, criterion: str = "") -> list[AlertRow]:
    """Return the newest standing alerts for a panel; three queries."""
    rows = alert_list()
    if criterion:
        rows = rows.filter(Q(criterion__key=criterion) | Q(criterion=None, topic=None))
    return alert_rows(list(rows[:limit]), user=user)


# ---------- subjects of the inbox


def alert_subjects(ids: Collection[int], user: User) -> Mapping[int, Subject]:
    """Return those of these alerts that the user may open."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    rows = alert_rows(list(alert_list("all").filter(pk__in=ids)), user=user)
    return {
        row.alert.pk: Subject(title=row.title, url=reverse("alerts:detail", args=[row.alert.pk]))
        for row in rows
    }


def step_subjects(ids: Collection[int], user: User) -> Mapping[int, Subject]:
    """Return several alerts of one evaluation as one thing: the list."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    steps = WatchStep.objects.filter(pk__in=ids).select_related("plan")
    return {
        row.pk: Subject(
            title=f"several alerts of plan {row.plan.name}, {row.day.day} {row.day:%b}",
            url=reverse("alerts:list"),
        )
        for row in steps
    }


# ---------- charts of one alert


@dataclass(frozen=True, slots=True)
class ChartMark:
    """What began on a day: a version of the bot, or a new baseline."""

    day: date
    text: str
    of_bot: bool


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A night or week: hits of n, and the part of the line."""

    day: date
    name: str
    hits: int
    n: int
    part: int


def judged_points(steps: Iterable[WatchStep], criterion: int) -> list[ChartPoint]:
    """Return the passing share of the judged sample by night."""
    return _points(steps, criterion, lambda counts, key: counts.get("judged", {}).get(key))


def anchor_points(steps: Iterable[WatchStep], criterion: int, kind: str) -> list[ChartPoint]:
    """Return the share of flips of a kind among the anchors by night."""
    return _points(steps, criterion, lambda counts, key: counts.get("anchors", {}).get(key, {}).get(kind))


def label_points(steps: Iterable[WatchStep], criterion: int) -> list[ChartPoint]:
    """Return how often judge and consensus agree on the anchors by night."""
    return _points(steps, criterion, lambda counts, key: counts.get("labels", {}).get(key))


def audit_points(steps: Iterable[WatchStep], criterion: int) -> list[ChartPoint]:
    """Return the raters' passing share of the random share by week."""
    return _points(steps, criterion, lambda counts, key: counts.get("audit", {}).get(key))


def flip_points(steps: Iterable[WatchStep]) -> list[ChartPoint]:
    """Return the share of flips over all anchors and criteria by night."""
    found = []
    for step in steps:
        pairs = [one["flipped"] for one in step.counts.get("anchors", {}).values()]
        n = sum(pair[1] for pair in pairs)
        if n:
            found.append(ChartPoint(step.day, _day(step.day), sum(pair[0] for pair in pairs), n, 0))
    return found


def chart_marks(steps: Iterable[WatchStep], criterion: int | None) -> list[ChartMark]:
    """Return the versions of the bot that went live, and where baselines of a criterion began anew."""
    key, found, before = str(criterion), [], None
    for step in steps:
        found += [ChartMark(step.day, f"Bot {one}", of_bot=True) for one in step.counts.get("bots", ())]
        part = step.counts.get("parts", {}).get(key, before)
        if before is not None and part != before:
            new = criterion in step.counts.get("judges", ())
            found.append(ChartMark(step.day, "New judge or prompt" if new else "New baseline", of_bot=False))
        before = part
    return found


def _points(steps: Iterable[WatchStep], criterion: int, read: Any) -> list[ChartPoint]:
    key, found = str(criterion), []
    for step in steps:
        pair = read(step.counts, key)
        if pair and pair[1]:
            part = step.counts.get("parts", {}).get(key, 0)
            found.append(ChartPoint(step.day, _day(step.day), pair[0], pair[1], part))
    return found


def steps_of(alert: Alert, *, most: int) -> list[WatchStep]:
    """Return the newest steps of an alert's plan in the order of time, without their states; one query."""
    rows = WatchStep.objects.filter(plan=alert.plan_id).defer("state").order_by("-pk")
    return sorted(rows[:most], key=lambda row: (row.day, row.pk))
