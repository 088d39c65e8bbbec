"""The watch over one sample plan: baselines are collected and frozen, then each night is held against them.

The state is plain JSON, one part a criterion: a night's row stores it, and the next night starts there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from alignment.alerts.core.attribution import (
    NEVER,
    AnchorAnswers,
    Baselines,
    Night,
    Policy,
    Rates,
    Watch,
    observe,
    observe_audit,
)
from alignment.alerts.core.baselines import (
    FEWEST_NIGHTS,
    TOLERANCE,
    Band,
    flip_band,
    night_band,
)
from alignment.alerts.core.detectors import NIGHTS_A_YEAR, Sample
from alignment.alerts.core.marks import mark_night
from alignment.alerts.core.recovery import RECOVERY_NIGHTS, RECOVERY_WEEKS, in_range, newest
from alignment.alerts.core.shared_flips import Flipped, flips_collect, flips_start, flips_watch
from alignment.alerts.core.stored_state import (
    Json,
    band_json,
    band_of,
    watch_json,
    watch_of,
)
from alignment.statistics.cusum import LIMIT

# Nights whose majority is the baseline answer of an anchor: an odd number, not part of the share of flips.
ANSWER_NIGHTS = 7
AUDIT_WEEKS = FEWEST_NIGHTS
# A version is live from the first night with so many of the chats, until it has next to none.
GOES_LIVE, GOES = 0.2, 0.05
NO_BAND = Band(np.array([0.5]), np.array([0.0]), np.array([1.0]))
EMPTY = Sample(np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]]))
NO_RATES = Rates(EMPTY, EMPTY)
NO_SHARES = Sample(np.array([0.0]), np.array([0.0]))


class Stratum(NamedTuple):
    """Passing and applicable answers of a topic, and the weight of each."""

    passed: int
    answers: int
    weight: float


@dataclass(frozen=True)
class CriterionNight:
    """One criterion on one night.

    judge : its version; another one starts new baselines, except the raters'. question : version of the
    criterion's text; another one restarts all. anchors : whether each anchor passed, by chat.
    """

    judge: str
    question: str
    judged: Sequence[Stratum]
    anchors: Mapping[int, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanNight:
    """One night of a plan. judge : version of the whole judge. versions : chats by version of the bot.

    A version of the bot starts no baseline, not even while one is collected: with frequent releases it would
    never be frozen. Its nights differ more then, which widens the band.
    """

    day: date
    judge: str
    criteria: Mapping[int, CriterionNight]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """Settings of the watch; `family`: criteria watched, over all plans. `nights`: of a baseline."""

    policy: Policy = field(default_factory=Policy)
    family: int = 1
    nights: int = 28
    tolerance: float = TOLERANCE
    mark_limit: float = LIMIT

    @property
    def band_alpha(self) -> float:
        """Error of each baseline's interval."""
        return self.policy.band_alpha(self.family)

    @property
    def flip_nights(self) -> int:
        """Nights of the baseline that count flips, after the anchors have their baseline answers."""
        return max(1, self.nights - ANSWER_NIGHTS)


@dataclass(frozen=True)
class WeekMark:
    """The CUSUM of a criterion after a whole week; `marked`: above the limit."""

    criterion: int
    week: date
    sum: float
    marked: bool


@dataclass(frozen=True)
class Step:
    """The state after a night, and what it restarted: criteria with another judge, or another text.

    judge : the whole judge is another one. live : versions of the bot that went live.
    """

    state: Json
    judges: frozenset[int] = frozenset()
    questions: frozenset[int] = frozenset()
    judge: bool = False
    marks: tuple[WeekMark, ...] = ()
    live: tuple[str, ...] = ()


def advance(state: Mapping[str, Any], night: PlanNight, settings: Settings) -> Step:
    """Add a night; `state` is {} before the first one. Criteria that the night does not have are dropped."""
    before: Mapping[str, Json] = state.get("criteria", {})
    renewed = bool(state) and state["judge"] != night.judge
    flips = flips_start() if renewed or not state else state["flips"]
    judges, questions, marks, after = set(), set(), [], {}
    for key, one in night.criteria.items():
        own = before.get(str(key)) or _start(one, night.day)
        if own.get("question", one.question) != one.question:
            questions.add(key)
            own = _start(one, night.day, part=own["part"] + 1)
        elif own["judge"] != one.judge:
            judges.add(key)
            own = _restart(own, night.day, anchors=True) | {"judge": one.judge}
        after[str(key)] = own | {"question": one.question}
    flips = _flips_night(flips, after, night, settings)
    for key, one in night.criteria.items():
        own, mark = _criterion_night(after[str(key)], one, night, settings, flips=flips)
        after[str(key)] = own
        marks += [WeekMark(key, *mark)] if mark else []
    was = state.get("live")
    live = versions_live(was or (), night.versions)
    fresh = () if was is None else tuple(one for one in live if one and one not in was)
    state = {"judge": night.judge, "flips": flips, "criteria": after, "live": live}
    return Step(state, frozenset(judges), frozenset(questions), renewed, tuple(marks), fresh)


# ---------- start and versions


def _start(night: CriterionNight, day: date, *, part: int = 0) -> Json:
    return {
        "judge": night.judge,
        "question": night.question,
        "part": part,
        "watch": watch_json(Watch.start(1)),
        "judged": _judged_start(),
        "anchors": _anchors_start(),
        "audit": _audit_start(day),
        "cusum": {},
    }


def _judged_start() -> Json:
    return {"nights": [], "seen": 0, "band": None}


def _anchors_start() -> Json:
    return {"nights": 0, "votes": {}, "answers": None, "flips": {}, "counted": 0, "bands": None}


def _audit_start(day: date) -> Json:
    return {"since": day.isoformat(), "weeks": [], "band": None}


def _restart(own: Json, day: date, *, anchors: bool = False, audit: bool = False) -> Json:
    """Restart the judged rate's baseline, and those of the anchors and of the raters' rate if wanted."""
    watch, start = watch_of(own["watch"]), Watch.start(1)
    fresh = replace(start, night=watch.night)
    if not anchors:
        fresh = replace(fresh, anchors=watch.anchors, anchors_since=watch.anchors_since)
    if not audit:
        fresh = replace(fresh, human=watch.human, human_since=watch.human_since)
    return own | {
        "part": own["part"] + 1,
        "watch": watch_json(fresh),
        "judged": _judged_start(),
        "anchors": _anchors_start() if anchors else own["anchors"],
        "audit": _audit_start(day) if audit else own["audit"],
        "cusum": {},
    }


def accept(state: Mapping[str, Any], *, criterion: int | None, of_judge: bool, day: date) -> Json:
    """Collect the baselines of a criterion again, from the next night on; None: all criteria.

    of_judge : the anchors' baseline too, else the raters'.
    """
    keys = state["criteria"] if criterion is None else [str(criterion)]
    fresh = {
        key: _restart(own, day, anchors=of_judge, audit=not of_judge)
        for key in keys
        if (own := state["criteria"].get(key)) is not None
    }
    flips = {"flips": flips_start()} if criterion is None else {}
    return {**state, **flips, "criteria": {**state["criteria"], **fresh}}


# ---------- a night of one criterion


def _criterion_night(
    own: Json, one: CriterionNight, night: PlanNight, settings: Settings, *, flips: Json
) -> tuple[Json, tuple[date, float, bool] | None]:
    watch = watch_of(own["watch"])
    watch = replace(watch, flips_since=np.array(watch.night if flips["alarmed"] else NEVER))
    anchors, answers = _anchor_night(own["anchors"], one.anchors, settings)
    judged = own["judged"]
    rates = NO_RATES
    if judged["band"] is not None:
        rates = _rates(one.judged)
    else:
        judged = _judged_baseline(judged, one.judged, settings)
    bands = own["anchors"]["bands"]
    watch = observe(
        watch,
        Night(rates, answers),
        baselines=_baselines(own["judged"]["band"], bands),
        policy=settings.policy,
        looks_a_year=NIGHTS_A_YEAR,
        family=settings.family,
    )
    band = own["judged"]["band"]
    cusum, mark = mark_night(
        own["cusum"], night.day, one.judged, rate=band and band[0], limit=settings.mark_limit
    )
    watch, judged = _judged_recovery(watch, judged, one.judged)
    own = own | {"watch": watch_json(watch), "anchors": anchors, "judged": judged, "cusum": cusum}
    return own, mark


def _judged_recovery(watch: Watch, judged: Json, strata: Sequence[Stratum]) -> tuple[Watch, Json]:
    """End the alarm of a judged rate that is back in its range: the detectors restart, the band stays."""
    if watch.judged_since[0] == NEVER:
        return watch, judged
    recent = newest([*judged.get("recent", []), [list(one) for one in strata]], RECOVERY_NIGHTS)
    if not in_range(recent, judged["band"], samples=RECOVERY_NIGHTS):
        return watch, judged | {"recent": recent}
    start = Watch.start(1)
    names = ("judged", "guard", "claimed", "falls", "judged_since", "guard_since")
    watch = replace(watch, **{name: getattr(start, name) for name in names})
    return watch, judged | {"recent": []}


def _audit_recovery(watch: Watch, audit: Json, strata: Sequence[Stratum]) -> tuple[Watch, Json]:
    """The same of the raters' rate, once the judged rate has no alarm (any more)."""
    if watch.human_since[0] == NEVER:
        return watch, audit
    recent = newest([*audit.get("recent", []), [list(one) for one in strata]], RECOVERY_WEEKS)
    standing = watch.judged_since[0] != NEVER
    if standing or not in_range(recent, audit["band"], samples=RECOVERY_WEEKS):
        return watch, audit | {"recent": recent}
    start = Watch.start(1)
    return replace(watch, human=start.human, human_since=start.human_since), audit | {"recent": []}


def _rates(strata: Sequence[Stratum]) -> Rates:
    if not strata:
        return NO_RATES
    passed, answers, weights = (np.array(column, dtype=np.float64) for column in zip(*strata, strict=True))
    return Rates.of_strata(passed[np.newaxis], answers[np.newaxis], weights)


def _judged_baseline(judged: Json, strata: Sequence[Stratum], settings: Settings) -> Json:
    """Collect a night; freeze the band with the last one that it needs."""
    nights = [*judged["nights"], [list(one) for one in strata]] if strata else judged["nights"]
    seen = judged["seen"] + 1
    band = None
    full = sum(any(one[1] for one in night) for night in nights)
    if seen >= settings.nights and full >= FEWEST_NIGHTS:
        samples = [_rates([Stratum(*one) for one in night]).passed for night in nights]
        found = night_band(samples, alpha=settings.band_alpha, tolerance=settings.tolerance)
        band, nights = band_json(found), []
    return {"nights": nights, "seen": seen, "band": band}


def _baselines(judged: Sequence[float] | None, bands: Mapping[str, Any] | None) -> Baselines:
    flips = {name: band_of(bands[name]) if bands else NO_BAND for name in ("to_false", "to_true", "flipped")}
    whole = Band(np.array(0.0), np.array(0.0), np.array(1.0))
    return Baselines(band_of(judged) if judged else NO_BAND, **flips, flips=whole)


# ---------- anchors


def _anchor_night(
    anchors: Json, passed: Mapping[int, bool], settings: Settings
) -> tuple[Json, AnchorAnswers]:
    """Collect the baseline of the anchors, then count tonight's flips; without a baseline yet none count."""
    none = AnchorAnswers(EMPTY, EMPTY, EMPTY, NO_SHARES)
    if not passed:
        return anchors, none
    if anchors["answers"] is None:
        return _vote(anchors, passed), none
    counts = flip_counts(anchors["answers"], passed)
    if anchors["bands"] is None:
        return _flip_baseline(anchors, counts, settings), none
    samples = {name: Sample.of_counts([hits], [n]) for name, (hits, n) in counts.items()}
    return anchors, AnchorAnswers(**samples, flips=NO_SHARES)


def _vote(anchors: Json, passed: Mapping[int, bool]) -> Json:
    """Add a night to the votes; after the last one the majority is the baseline answer. A tie is none."""
    votes = {key: list(pair) for key, pair in anchors["votes"].items()}
    for chat, good in passed.items():
        votes.setdefault(str(chat), [0, 0])[good] += 1
    nights = anchors["nights"] + 1
    if nights < ANSWER_NIGHTS:
        return anchors | {"nights": nights, "votes": votes}
    answers = {chat: int(good > bad) for chat, (bad, good) in votes.items() if good != bad}
    return anchors | {"nights": nights, "votes": {}, "answers": answers}


def flip_counts(answers: Mapping[str, int], passed: Mapping[int, bool]) -> dict[str, tuple[int, int]]:
    """Return flips and anchors by kind: passing ones that fail now, failing ones that pass, and both.

    >>> flip_counts({"1": 1, "2": 1, "3": 0}, {1: True, 2: False, 3: False, 4: False})
    {'to_false': (1, 2), 'to_true': (0, 1), 'flipped': (1, 3)}
    """
    pairs = [(answers[str(chat)], good) for chat, good in passed.items() if str(chat) in answers]
    down = [not good for was, good in pairs if was]
    up = [good for was, good in pairs if not was]
    return {
        "to_false": (sum(down), len(down)),
        "to_true": (sum(up), len(up)),
        "flipped": (sum(down) + sum(up), len(pairs)),
    }


def _flip_baseline(anchors: Json, counts: Mapping[str, tuple[int, int]], settings: Settings) -> Json:
    flips = {
        name: [a + b for a, b in zip(anchors["flips"].get(name, (0, 0)), pair, strict=True)]
        for name, pair in counts.items()
    }
    counted, bands = anchors["counted"] + 1, None
    if counted >= settings.flip_nights:
        bands = {
            name: band_json(flip_band([hits], [n], alpha=settings.band_alpha, tolerance=settings.tolerance))
            if n
            else band_json(NO_BAND)
            for name, (hits, n) in flips.items()
        }
    return anchors | {"flips": flips, "counted": counted, "bands": bands}


# ---------- flips of all criteria


def _flips_night(flips: Json, criteria: Mapping[str, Json], night: PlanNight, settings: Settings) -> Json:
    """Add tonight's flips in all criteria whose anchors have baseline answers."""
    flipped = _flipped(criteria, night)
    if not flipped:
        return flips
    asked = {str(key) for key in night.criteria}
    flips = flips | {"apart": {key: one for key, one in flips.get("apart", {}).items() if key in asked}}
    if flips["band"] is not None:
        return flips_watch(flips, flipped, limit=float(np.log(settings.policy.limit(settings.family))))
    return flips_collect(
        flips,
        flipped,
        nights=settings.flip_nights,
        alpha=settings.band_alpha,
        tolerance=settings.tolerance,
    )


def _flipped(criteria: Mapping[str, Json], night: PlanNight) -> Flipped:
    """Whether each anchor flipped, by chat and criterion, where it has a baseline answer."""
    flipped: dict[int, dict[int, bool]] = {}
    for key, one in night.criteria.items():
        answers = criteria[str(key)]["anchors"]["answers"]
        for chat, good in one.anchors.items() if answers is not None else ():
            if (was := answers.get(str(chat))) is not None:
                flipped.setdefault(chat, {})[key] = bool(was) != good
    return flipped


# ---------- the weekly audit


def add_audit(
    state: Mapping[str, Any], week: date, rates: Mapping[int, Sequence[Stratum]], settings: Settings
) -> Json:
    """Add the labels of a week's random share, by criterion; a week before the version is left out."""
    limit = float(np.log(settings.policy.limit(settings.family)))
    criteria = dict(state["criteria"])
    for key, strata in rates.items():
        own = criteria.get(str(key))
        if own is None or not strata or week.isoformat() < own["audit"]["since"]:
            continue
        audit, watch = own["audit"], watch_of(own["watch"])
        if audit["band"] is None:
            audit = _audit_baseline(audit, strata, settings)
        else:
            last = max(0, watch.night - 1)
            watch = observe_audit(watch, _rates(strata), band_of(audit["band"]), limit=limit, night=last)
            watch, audit = _audit_recovery(watch, audit, strata)
        criteria[str(key)] = own | {"audit": audit, "watch": watch_json(watch)}
    return {**state, "criteria": criteria}


def audit_weeks(settings: Settings) -> int:
    """Weeks with labels that the raters' rate needs for its baseline."""
    return max(AUDIT_WEEKS, settings.nights // 7)


def _audit_baseline(audit: Json, strata: Sequence[Stratum], settings: Settings) -> Json:
    weeks = [*audit["weeks"], [list(one) for one in strata]]
    if sum(any(one[1] for one in week) for week in weeks) < audit_weeks(settings):
        return audit | {"weeks": weeks}
    samples = [_rates([Stratum(*one) for one in week]).passed for week in weeks]
    band = night_band(samples, alpha=settings.band_alpha, tolerance=settings.tolerance)
    return audit | {"weeks": [], "band": band_json(band)}


# ---------- versions of the bot


def versions_live(live: Collection[str], chats: Mapping[str, int]) -> list[str]:
    """Return the versions that are live after a night with these chats; several in an experiment.

    >>> versions_live(["5.1"], {"5.1": 81, "5.2": 19}), versions_live(["5.1"], {"5.1": 60, "5.2": 40})
    (['5.1'], ['5.1', '5.2'])
    >>> versions_live(["5.1", "5.2"], {"5.1": 4, "5.2": 96}), versions_live(["5.2"], {})
    (['5.2'], ['5.2'])
    """
    whole = sum(chats.values())
    if not whole:
        return sorted(live)
    return sorted(one for one, n in chats.items() if n >= (GOES if one in live else GOES_LIVE) * whole)


def monday(day: date) -> date:
    """First day of the week."""
    return day - timedelta(days=day.weekday())
