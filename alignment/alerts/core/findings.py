"""What a stored state of the watch says: the alarms of each criterion, and how far its baseline is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alignment.alerts.core.attribution import NEVER, Cause, Change, Stream, Watch
from alignment.alerts.core.detectors import Detector, detector_age
from alignment.alerts.core.plan_watch import ANSWER_NIGHTS, Settings, audit_weeks
from alignment.alerts.core.shared_flips import flips_evidence
from alignment.alerts.core.stored_state import detector_of, watch_of

ANCHOR_CHANGES = (Change.STRICTER, Change.MORE_LENIENT, Change.LESS_CONSISTENT)
ANCHOR_BANDS = ("to_false", "to_true", "flipped")


@dataclass(frozen=True)
class Signal:
    """One stream in alarm.

    Parameters
    ----------
    evidence : today's e-value, as a logarithm to base 10.
    before, now : rate of the baseline, and since the estimated start of the change: of passing chats, or of
        flips on the anchors. nights : nights (weeks of the audit) since that start.
    expected : lowest and highest rate that are no drift.
    """

    stream: Stream
    change: Change
    evidence: float
    before: float
    now: float | None
    nights: int
    expected: tuple[float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as an alert stores it."""
        return {
            "stream": self.stream.value,
            "change": self.change.value,
            "evidence": round(self.evidence, 2),
            "before": round(self.before, 4),
            "now": None if self.now is None else round(self.now, 4),
            "nights": self.nights,
            "expected": [round(one, 4) for one in self.expected] if self.expected else None,
        }


@dataclass(frozen=True)
class Finding:
    """An alarm that stands: its cause, and the streams that say so. `criterion` None: all together."""

    criterion: int | None
    cause: Cause
    signals: tuple[Signal, ...]


def findings(state: Mapping[str, Any]) -> list[Finding]:
    """Return the alarms of a state, those of all criteria first.

    A criterion has two where both changed: one of the judge and one of the bot.
    """
    flips = state["flips"]
    found = [_of_flips(flips)] if flips["alarmed"] else []
    for key, own in state["criteria"].items():
        found += _of_criterion(int(key), own, flips_alarmed=flips["alarmed"])
    return found


def _of_flips(flips: Mapping[str, Any]) -> Finding:
    detector = detector_of(flips["detector"])
    # A state of an earlier version has the evidence of the whole alone.
    least = max(flips_evidence(flips), 0.0) if flips.get("apart") else detector.log_evidence()
    signal = _signal(Stream.ANCHORS, Change.LESS_CONSISTENT, detector, least, flips["band"])
    return Finding(None, Cause.JUDGE, (signal,))


def _of_criterion(key: int, own: Mapping[str, Any], *, flips_alarmed: bool) -> list[Finding]:
    watch = watch_of(own["watch"])
    signals = _signals(watch, own)
    judged, anchors = signals.get(Stream.JUDGED), signals.get(Stream.ANCHORS)
    audit = signals.get(Stream.AUDIT)
    judge = anchors is not None or (judged is not None and flips_alarmed)
    bot = audit is not None or bool(watch.guard_since[0] != NEVER)
    parts: dict[Cause, tuple[Signal | None, ...]]
    if judge and bot:
        parts = {Cause.JUDGE: (anchors, judged), Cause.BOT: (audit, judged)}
    elif judge or bot:
        parts = {Cause.JUDGE if judge else Cause.BOT: (judged, anchors, audit)}
    else:
        parts = {Cause.UNCLEAR: (judged,)}
    kept = {cause: tuple(one for one in some if one is not None) for cause, some in parts.items()}
    return [Finding(key, cause, some) for cause, some in kept.items() if some]


def _signals(watch: Watch, own: Mapping[str, Any]) -> dict[Stream, Signal]:
    found = {}
    if watch.judged_since[0] != NEVER:
        found[Stream.JUDGED] = _rate_signal(
            Stream.JUDGED, watch.judged, bool(watch.falls[0]), own["judged"]["band"]
        )
    if watch.human_since[0] != NEVER:
        falls = bool(watch.human.falls()[0])
        found[Stream.AUDIT] = _rate_signal(Stream.AUDIT, watch.human, falls, own["audit"]["band"])
    if watch.anchors_since[0] != NEVER:
        kind = int(watch.anchors.changes()[0])
        name = ANCHOR_BANDS[kind]
        found[Stream.ANCHORS] = _signal(
            Stream.ANCHORS,
            ANCHOR_CHANGES[kind],
            getattr(watch.anchors, name),
            watch.anchors.log_evidence(),
            own["anchors"]["bands"][name],
        )
    return found


def _rate_signal(stream: Stream, sides: Any, falls: bool, band: list[float]) -> Signal:
    """Of a rate that falls the detector counts failures."""
    change = Change.LOWER if falls else Change.HIGHER
    one = _signal(stream, change, sides.lower if falls else sides.higher, sides.log_evidence(), band)
    return one if not falls or one.now is None else replace(one, now=max(0.0, 1 - one.now))


def _signal(stream: Stream, change: Change, detector: Detector, logs: Any, band: Sequence[float]) -> Signal:
    mean = float(np.ravel(detector.mean())[0])
    evidence = float(np.ravel(logs)[0]) / float(np.log(10))
    now = None if np.isnan(mean) else mean
    return Signal(stream, change, evidence, band[0], now, detector_age(detector), (band[1], band[2]))


def settled(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[int]:
    """Return the criteria whose rates had an alarm in the state before, and have none after it."""
    own = before.get("criteria", {})
    return frozenset(
        int(key)
        for key, one in after["criteria"].items()
        if key in own and _rate_alarmed(own[key]) and not _rate_alarmed(one)
    )


def _rate_alarmed(own: Mapping[str, Any]) -> bool:
    return any(own["watch"][name] != NEVER for name in ("judged_since", "human_since"))


@dataclass(frozen=True)
class Progress:
    """How far the baseline of a criterion is; each part as collected and needed, None where it is frozen.

    `judged` and `anchors` in nights, `audit` in weeks. `anchors_known`: anchors with a baseline answer.
    """

    judged: tuple[int, int] | None
    anchors: tuple[int, int] | None
    audit: tuple[int, int] | None
    rate: tuple[float, float, float] | None
    anchors_known: int
    anchors_passing: int

    @property
    def watched(self) -> bool:
        """Whether its judged rate can raise an alarm."""
        return self.judged is None


def progress(own: Mapping[str, Any], settings: Settings) -> Progress:
    """Return how far a criterion's stored baseline is."""
    judged, anchors, audit = own["judged"], own["anchors"], own["audit"]
    nights = anchors["nights"] + anchors["counted"]
    answers = anchors["answers"] or {}
    return Progress(
        judged=None if judged["band"] else (judged["seen"], settings.nights),
        anchors=None if anchors["bands"] else (nights, ANSWER_NIGHTS + settings.flip_nights),
        audit=None if audit["band"] else (len(audit["weeks"]), audit_weeks(settings)),
        rate=tuple(judged["band"]) if judged["band"] else None,
        anchors_known=len(answers),
        anchors_passing=sum(answers.values()),
    )
