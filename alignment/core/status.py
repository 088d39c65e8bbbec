"""May this judge be called aligned on a criterion: a versioned policy, decided with reasons in words."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from alignment.core.agreement import Confusion
from alignment.core.estimates import Estimate

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

    Raises
    ------
    ValueError : a limit outside its range, by name.

    Examples
    --------
    >>> StatusPolicy().label
    'start values, version 1'
    """

    name: str = "start values"
    version: int = 1
    minimum_true: int = 30
    minimum_false: int = 30
    minimum_rate: float = 0.80
    minimum_rate_low: float = 0.65
    balanced_low_above: float = 0.50

    def __post_init__(self) -> None:
        for name in ("minimum_true", "minimum_false"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more")
        for name in ("minimum_rate", "minimum_rate_low", "balanced_low_above"):
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
    policy: StatusPolicy,
    tier: str,
) -> Decision:
    """Apply the policy to one criterion.

    Parameters
    ----------
    table : people against the judge.
    tpr, tnr, balanced_accuracy : with intervals; of that table, or weighted.
    policy : the limits.
    tier : "subjective" adds that the criterion is directional only; the status stays.

    Returns
    -------
    Decision : not_enough_labels before anything else, also where TPR or TNR has no value; then
        not_aligned with each limit missed; then aligned.

    Examples
    --------
    >>> from alignment.core.intervals import mover_mean, proportion
    >>> tpr, tnr = proportion(60, 62, reason=""), proportion(11, 12, reason="")
    >>> decide_status(table=Confusion(60, 2, 1, 11), tpr=tpr, tnr=tnr, tier="simple",
    ...               balanced_accuracy=mover_mean(tpr, tnr), policy=StatusPolicy()).reasons
    ('not enough human False labels: 12 of 30',)
    """
    unknown = dict.fromkeys(rate.reason for rate in (tpr, tnr) if rate.value is None)
    missing = _missing_labels(table, policy) or list(unknown)
    missed = [] if missing else _missed_limits(tpr, tnr, balanced_accuracy, policy)
    decided = Status.NOT_ALIGNED if missed else Status.ALIGNED
    status = Status.NOT_ENOUGH_LABELS if missing else decided
    directional = [DIRECTIONAL] if tier == "subjective" else []
    return Decision(status, (*missing, *missed, *directional))


def _missing_labels(table: Confusion, policy: StatusPolicy) -> list[str]:
    needed = (
        ("True", table.human_true, policy.minimum_true),
        ("False", table.human_false, policy.minimum_false),
    )
    return [f"not enough human {word} labels: {n} of {least}" for word, n, least in needed if n < least]


def _missed_limits(tpr: Estimate, tnr: Estimate, balanced: Estimate, policy: StatusPolicy) -> list[str]:
    reasons = []
    for name, rate in (("TPR", tpr), ("TNR", tnr)):
        if rate.value is not None and rate.value < policy.minimum_rate:
            reasons.append(f"{name} {rate.value:.3f} is below {policy.minimum_rate:.2f}")
        if rate.interval and rate.interval.low < policy.minimum_rate_low:
            reasons.append(
                f"{name}'s lower bound {rate.interval.low:.3f} is below {policy.minimum_rate_low:.2f}"
            )
    if balanced.interval and balanced.interval.low <= policy.balanced_low_above:
        low, limit = balanced.interval.low, policy.balanced_low_above
        reasons.append(f"balanced accuracy's lower bound {low:.3f} is not above {limit:.2f}")
    return reasons
