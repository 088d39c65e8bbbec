"""May this judge be called aligned on a criterion: a versioned policy, decided with reasons in words."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate

DIRECTIONAL = "directional only: reported, never blocks"


class Status(StrEnum):
    """What a report says of one criterion."""

    ALIGNED = "aligned"
    NOT_ALIGNED = "not_aligned"
    NOT_ENOUGH_LABELS = "not_enough_labels"


@dataclass(frozen=True)
class StatusPolicy:
    """The limits; a changed limit is a new version.

    minimum_true, minimum_false : human answers of each class below which nothing is decided.
    minimum_rate : smallest TPR and TNR. minimum_rate_low : smallest lower Wilson bound of either.
    balanced_low_above : balanced accuracy's lower bound has to lie above this.
    largest_silent : share of people's True, and of their False, on which the judge may give neither.

    Raises
    ------
    ValueError : a limit outside its range, by name.

    Examples
    --------
    >>> StatusPolicy().label
    'start values, version 2'
    """

    name: str = "start values"
    version: int = 2
    minimum_true: int = 30
    minimum_false: int = 30
    minimum_rate: float = 0.80
    minimum_rate_low: float = 0.65
    balanced_low_above: float = 0.50
    largest_silent: float = 0.10

    def __post_init__(self) -> None:
        for name in ("minimum_true", "minimum_false"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more")
        for name in ("minimum_rate", "minimum_rate_low", "balanced_low_above", "largest_silent"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1")

    @property
    def label(self) -> str:
        """Name and version in words."""
        return f"{self.name}, version {self.version}"

    def as_json(self) -> dict[str, Any]:
        """Every parameter by name."""
        return asdict(self)


@dataclass(frozen=True)
class LeftOpen:
    """Of the chats that people gave one answer: those without True or False from the judge.

    chats : whatever the reason. silent : those on which the judge was asked and answered something else.
    share : of these among the chats it was asked about; None: as counted, else weighted.
    """

    chats: int = 0
    silent: int = 0
    share: float | None = None


NOTHING_OPEN = LeftOpen()
Classes = tuple[tuple[str, int, LeftOpen], ...]  # answer of people, chats in the table, chats not in it


@dataclass(frozen=True)
class Decision:
    """A status and why, one sentence a reason. The status is None where the policy cannot be applied."""

    status: Status | None
    reasons: tuple[str, ...]


def decide_status(
    *,
    table: Confusion,
    tpr: Estimate,
    tnr: Estimate,
    balanced_accuracy: Estimate,
    open_true: LeftOpen = NOTHING_OPEN,
    open_false: LeftOpen = NOTHING_OPEN,
    policy: StatusPolicy,
    tier: str,
) -> Decision:
    """Apply the policy to one criterion.

    Parameters
    ----------
    table : people against the judge.
    tpr, tnr, balanced_accuracy : with intervals; of that table, or weighted.
    open_true, open_false : chats that people answered so and that are not in the table.
    policy : the limits.
    tier : "subjective" adds that the criterion is directional only; the status stays.

    Returns
    -------
    Decision : not_enough_labels before anything else, also where TPR or TNR has no value; then
        not_aligned with each limit missed; then aligned. On how many chats the judge kept silent is a reason
        beside either.

    Examples
    --------
    >>> from alignment.statistics.intervals import mover_mean, proportion
    >>> tpr, tnr = proportion(60, 62, reason=""), proportion(11, 12, reason="")
    >>> decide_status(table=Confusion(60, 2, 1, 11), tpr=tpr, tnr=tnr, tier="simple",
    ...               balanced_accuracy=mover_mean(tpr, tnr), policy=StatusPolicy()).reasons
    ('not enough human False labels: 12 of 30',)
    """
    unknown = dict.fromkeys(rate.reason for rate in (tpr, tnr) if rate.value is None)
    classes = (("True", table.human_true, open_true), ("False", table.human_false, open_false))
    missing = _missing_labels(classes, policy) or list(unknown)
    silent = _silent(classes, policy)
    missed = [] if missing else _missed_limits(tpr, tnr, balanced_accuracy, policy)
    decided = Status.NOT_ALIGNED if missed or silent else Status.ALIGNED
    status = Status.NOT_ENOUGH_LABELS if missing else decided
    directional = [DIRECTIONAL] if tier == "subjective" else []
    return Decision(status, (*missing, *missed, *silent, *directional))


def _missing_labels(classes: Classes, policy: StatusPolicy) -> list[str]:
    """What is missing may be labels, or the judge's answers to those that are there."""
    least = {"True": policy.minimum_true, "False": policy.minimum_false}
    return [
        f"verdicts on {n} of {n + left.chats} chats that people answered {word}: {least[word]} needed"
        if n + left.chats >= least[word]
        else f"not enough human {word} labels: {n} of {least[word]}"
        for word, n, left in classes
        if n < least[word]
    ]


def _silent(classes: Classes, policy: StatusPolicy) -> list[str]:
    """Who is right where it answers, and answers the easy ones alone, has not been shown to be right."""
    found = []
    for word, n, left in classes:
        asked = n + left.silent
        share = left.silent / asked if left.share is None and asked else left.share or 0.0
        if share > policy.largest_silent:
            weighted = "" if left.share is None else f", {share:.0%} when weighted"
            found.append(
                f"the judge gave neither True nor False on {left.silent} of {asked} chats"
                f" that people answered {word}{weighted}"
            )
    return found


def _missed_limits(tpr: Estimate, tnr: Estimate, balanced: Estimate, policy: StatusPolicy) -> list[str]:
    reasons = []
    for name, rate in (("TPR", tpr), ("TNR", tnr)):
        if rate.value is not None and rate.value < policy.minimum_rate:
            reasons.append(f"{name} {_beside(rate.value, policy.minimum_rate)}")
        if rate.interval and rate.interval.low < policy.minimum_rate_low:
            reasons.append(f"{name}'s lower bound {_beside(rate.interval.low, policy.minimum_rate_low)}")
    if balanced.interval and balanced.interval.low <= policy.balanced_low_above:
        low, limit = balanced.interval.low, policy.balanced_low_above
        reasons.append(f"balanced accuracy's lower bound {_beside(low, limit, where='not above')}")
    return reasons


def _beside(value: float, limit: float, *, where: str = "below") -> str:
    """Two decimals, and a third where two would show the limit itself."""
    digits = 3 if f"{value:.2f}" == f"{limit:.2f}" else 2
    return f"{value:.{digits}f} is {where} {limit:.2f}"
