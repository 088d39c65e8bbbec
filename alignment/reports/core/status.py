"""The status of a criterion: a versioned policy, and its decision with reasons."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate

DIRECTIONAL = "directional only: reported, never blocks"


class Status(StrEnum):
    """The status of one criterion."""

    ALIGNED = "aligned"
    NOT_ALIGNED = "not_aligned"
    NOT_ENOUGH_LABELS = "not_enough_labels"


@dataclass(frozen=True)
class StatusPolicy:
    """The limits; a changed limit needs a new version.

    minimum_true, minimum_false : compared chats that a status needs, by human answer.
    minimum_rate : smallest TPR and TNR. minimum_rate_low : smallest lower bound of either.
    balanced_low_above : balanced accuracy's lower bound must be above this.
    largest_abstention : largest share of the human True, and of the human False, on which the judge may
        abstain; JSON calls it `largest_silent`.

    Raises
    ------
    ValueError : a limit is outside its range. The message names it.

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
    largest_abstention: float = 0.10

    def __post_init__(self) -> None:
        for name in ("minimum_true", "minimum_false"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more")
        for name in ("minimum_rate", "minimum_rate_low", "balanced_low_above", "largest_abstention"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1")

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}, version {self.version}"

    def as_json(self) -> dict[str, Any]:
        """Return every parameter by its name in JSON."""
        limits = asdict(self)
        return limits | {"largest_silent": limits.pop("largest_abstention")}


@dataclass(frozen=True)
class Abstentions:
    """Chats with one human answer and without True or False from the judge.

    chats : their number, for any reason.
    abstained : chats on which the judge abstained: it was asked, and did not answer True or False.
    share : weighted share of abstentions among the chats it was asked about; None if not weighted.
    """

    chats: int = 0
    abstained: int = 0
    share: float | None = None


NOTHING_OPEN = Abstentions()
Classes = tuple[tuple[str, int, Abstentions], ...]  # human answer, compared chats, chats not compared


@dataclass(frozen=True)
class Decision:
    """A status and its reasons, one sentence each. The status is None if the policy does not apply."""

    status: Status | None
    reasons: tuple[str, ...]


def decide_status(
    *,
    table: Confusion,
    tpr: Estimate,
    tnr: Estimate,
    balanced_accuracy: Estimate,
    open_true: Abstentions = NOTHING_OPEN,
    open_false: Abstentions = NOTHING_OPEN,
    policy: StatusPolicy,
    tier: str,
) -> Decision:
    """Apply the policy to one criterion.

    Parameters
    ----------
    table : human answers against verdicts.
    tpr, tnr, balanced_accuracy : estimates with intervals, of that table or weighted.
    open_true, open_false : chats with this human answer that are not in the table.
    policy : the limits.
    tier : "subjective" adds the reason "directional only"; the status stays.

    Returns
    -------
    Decision : not_enough_labels is decided first, and also applies if TPR or TNR is undefined. Then
        not_aligned, with each missed limit as a reason; else aligned. Too many abstentions are a reason for
        both.

    Examples
    --------
    >>> from alignment.statistics.intervals import mover_mean, proportion
    >>> tpr, tnr = proportion(60, 62, reason=""), proportion(11, 12, reason="")
    >>> decide_status(table=Confusion(60, 2, 1, 11), tpr=tpr, tnr=tnr, tier="simple",
    ...               balanced_accuracy=mover_mean(tpr, tnr), policy=StatusPolicy()).reasons
    ('needs 18 more human False labels (12 of 30)',)
    """
    unknown = dict.fromkeys(rate.reason for rate in (tpr, tnr) if rate.value is None)
    classes = (("True", table.human_true, open_true), ("False", table.human_false, open_false))
    missing = _missing_labels(classes, policy) or list(unknown)
    abstained = _abstentions(classes, policy)
    missed = [] if missing else _missed_limits(tpr, tnr, balanced_accuracy, policy)
    decided = Status.NOT_ALIGNED if missed or abstained else Status.ALIGNED
    status = Status.NOT_ENOUGH_LABELS if missing else decided
    directional = [DIRECTIONAL] if tier == "subjective" else []
    return Decision(status, (*missing, *missed, *abstained, *directional))


def _missing_labels(classes: Classes, policy: StatusPolicy) -> list[str]:
    """Return what is missing by class: labels, or verdicts on labelled chats."""
    least = {"True": policy.minimum_true, "False": policy.minimum_false}
    return [_missing_of_class(word, n, other, least[word]) for word, n, other in classes if n < least[word]]


def _missing_of_class(word: str, n: int, other: Abstentions, least: int) -> str:
    labelled = n + other.chats
    if labelled >= least:
        return f"verdicts on {n} of {labelled} chats with a human {word}: {least} needed"
    verdicts = f", and verdicts on {other.chats} labelled chats" if other.chats else ""
    return f"needs {least - labelled} more human {word} labels ({labelled} of {least}){verdicts}"


def _abstentions(classes: Classes, policy: StatusPolicy) -> list[str]:
    """Return a reason for each class with too many abstentions: a judge must not skip hard chats."""
    reasons = []
    for word, n, other in classes:
        asked = n + other.abstained
        share = other.abstained / asked if other.share is None and asked else other.share or 0.0
        if share > policy.largest_abstention:
            weighted = "" if other.share is None else f", {share:.0%} when weighted"
            reasons.append(
                f"the judge abstained on {other.abstained} of {asked} chats with a human {word}{weighted}"
            )
    return reasons


def _missed_limits(tpr: Estimate, tnr: Estimate, balanced: Estimate, policy: StatusPolicy) -> list[str]:
    reasons = []
    for name, rate in (("TPR", tpr), ("TNR", tnr)):
        if rate.value is not None and rate.value < policy.minimum_rate:
            reasons.append(f"{name} {_comparison(rate.value, policy.minimum_rate)}")
        if rate.interval and rate.interval.low < policy.minimum_rate_low:
            reasons.append(f"{name}'s lower bound {_comparison(rate.interval.low, policy.minimum_rate_low)}")
    if balanced.interval and balanced.interval.low <= policy.balanced_low_above:
        low, limit = balanced.interval.low, policy.balanced_low_above
        reasons.append(f"balanced accuracy's lower bound {_comparison(low, limit, where='not above')}")
    return reasons


def _comparison(value: float, limit: float, *, where: str = "below") -> str:
    """Return two decimals, and a third if two would show the limit itself."""
    digits = 3 if f"{value:.2f}" == f"{limit:.2f}" else 2
    return f"{value:.{digits}f} is {where} {limit:.2f}"
