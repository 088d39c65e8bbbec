"""What changed in production, from the open alerts: the first sentences of monitoring, and by criterion."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from alignment.models.alerts import Alert, WatchStep
from labeling.models.sampling import SamplePlan

RATES = {"judged": "of judged chats, uncorrected", "audit": "of the chats that raters labelled"}


@dataclass(frozen=True, slots=True)
class Lede:
    """How many criteria changed; and of one change the alert, its rate and what caused it."""

    headline: str
    alert: Alert | None = None
    rate: str = ""
    cause: str = ""

    @property
    def name(self) -> str:
        """What the change is about."""
        alert = self.alert
        return alert.criterion.name if alert and alert.criterion else "All criteria"


def standing_changes() -> list[Alert]:
    """Return the drift alerts that have not ended, the latest change first; one query."""
    drifts = Alert.objects.standing().filter(kind=Alert.Kind.DRIFT).select_related("criterion")
    return list(drifts.order_by("-began_on", "-pk"))


def by_criterion(changes: Collection[Alert]) -> dict[int, Alert]:
    """Return the newest of these alerts of each criterion, by its id."""
    newest_last = sorted(changes, key=lambda one: one.pk)
    return {row.criterion_id: row for row in newest_last if row.criterion_id}


def lede(criteria: Collection[int], changes: Collection[Alert]) -> Lede | None:
    """Return what these open alerts say of these criteria; None while nothing is watched. At most one query.

    It is about the newest change that nobody has acknowledged, else the newest one. It has no figure of
    anchor chats: these may be holdout chats.
    """
    rows = [one for one in changes if one.criterion_id in (None, *criteria)]
    if not rows:
        watched = _watched()
        return Lede(f"None of {watched} watched criteria changed.") if watched else None
    changed = len({row.criterion_id for row in rows if row.criterion_id})
    begun = [row.began_on for row in rows]
    if changed:
        headline = f"{changed} of {len(criteria)} criteria changed {_when(begun)}."
    else:
        headline = f"The judge changed {_when(begun)}."
    row = min(rows, key=lambda one: one.acknowledged_at is not None)
    return Lede(headline, row, _rate(row), _cause(row))


def _watched() -> int:
    """Criteria with a frozen baseline, by the newest nights of the active plans."""
    night = WatchStep.objects.filter(plan__state=SamplePlan.State.ACTIVE, week=None).order_by("plan", "-pk")
    newest: dict[int, int] = {}
    for plan, watched in night.values_list("plan", "counts__watched"):
        newest.setdefault(plan, watched or 0)
    return sum(newest.values())


def _when(days: Sequence[date]) -> str:
    weeks = {day.isocalendar()[:2] for day in days}
    return f"in week {min(days).isocalendar().week}" if len(weeks) == 1 else f"since {_day(min(days))}"


def _day(day: date) -> str:
    return f"{day.day} {day:%b}"


def _rate(alert: Alert) -> str:
    """The rate now and the expected one; of the judge's answers on anchors only that they differ."""
    since = f"since {_day(alert.began_on)}"
    for one in alert.signals:
        if one["stream"] in RATES and one["now"] is not None:
            of = RATES[one["stream"]]
            return f"passes in {one['now']:.2f} {of}, {since}, expected {_expected(one)}."
    return f"has other answers on the anchor chats {since}."


def _expected(signal: Mapping[str, Any]) -> str:
    bounds = signal.get("expected")
    return f"{bounds[0]:.2f}–{bounds[1]:.2f}" if bounds else f"{signal['before']:.2f}"


def _cause(alert: Alert) -> str:
    if alert.cause == Alert.Cause.UNCLEAR:
        return f"It is not yet clear whether the bot or the judge changed.{_live(alert)}"
    if alert.cause == Alert.Cause.JUDGE:
        return "Only the judge can move the anchor chats, so the judge changed."
    labels = any(one["stream"] == "audit" for one in alert.signals)
    why = "Raters’ labels moved, too" if labels else "The anchor chats are stable"
    return f"{why}, so the bot changed.{_live(alert)}"


def _live(alert: Alert) -> str:
    if alert.bot_live_on is None:
        return ""
    on = "that day" if alert.bot_live_on == alert.began_on else f"on {_day(alert.bot_live_on)}"
    return f" Bot {alert.bot_version} went live {on}."
