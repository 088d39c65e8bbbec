"""Values with intervals; an undefined value is None and has a reason."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A closed interval, `low <= high`, in the unit of its value."""

    low: float
    high: float

    def complement(self) -> "Interval":
        """Turn the interval of a share p into that of 1 - p.

        >>> Interval(0.25, 0.5).complement()
        Interval(low=0.5, high=0.75)
        """
        return Interval(1 - self.high, 1 - self.low)

    def holding(self, value: float) -> "Interval":
        """Stretch the interval to include the value.

        >>> Interval(0.25, 0.5).holding(0.75)
        Interval(low=0.25, high=0.75)
        """
        return Interval(min(self.low, value), max(self.high, value))


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval, and the reason for what is missing.

    Parameters
    ----------
    value : the statistic; None if undefined (0/0).
    interval : None if it cannot be computed.
    reason : why `value` is None, or why `interval` is None although there is a value.
    flag : a caution about a value that is defined.
    dropped : number of bootstrap replicates in which the statistic was undefined.

    Examples
    --------
    >>> Estimate(0.5, Interval(0.25, 0.75)).as_json()
    {'value': 0.5, 'low': 0.25, 'high': 0.75}
    """

    value: float | None
    interval: Interval | None = None
    reason: str = ""
    flag: str = ""
    dropped: int = 0

    def as_json(self) -> dict[str, Any]:
        """JSON with `value`, `low`, `high`; `flag` and `dropped` only if set."""
        low, high = (self.interval.low, self.interval.high) if self.interval else (None, None)
        body: dict[str, Any] = {"value": self.value, "low": low, "high": high}
        if self.flag:
            body["flag"] = self.flag
        if self.dropped:
            body["dropped"] = self.dropped
        return body

    def complement(self) -> "Estimate":
        """Turn the estimate of a share into that of 1 - share, e.g. failing into passing.

        >>> Estimate(0.75, Interval(0.5, 1.0)).complement()
        Estimate(value=0.25, interval=Interval(low=0.0, high=0.5), reason='', flag='', dropped=0)
        """
        value = None if self.value is None else 1 - self.value
        interval = self.interval.complement() if self.interval else None
        return Estimate(value, interval, self.reason, self.flag, self.dropped)

    def clipped(self) -> "Estimate":
        """Clip value and interval to [0, 1].

        >>> Estimate(0.98, Interval(0.94, 1.02)).clipped().interval
        Interval(low=0.94, high=1.0)
        """
        if self.value is None or self.interval is None:
            return self
        value, low, high = (
            min(1.0, max(0.0, one)) for one in (self.value, self.interval.low, self.interval.high)
        )
        return replace(self, value=value, interval=Interval(low, high))


def undefined_reasons(estimates: dict[str, Estimate]) -> dict[str, str]:
    """Reasons of missing values by name, and of missing intervals by `name.interval`.

    >>> undefined_reasons({"tnr": Estimate(None, reason="no False"), "f1": Estimate(0.5, reason="few chats")})
    {'tnr': 'no False', 'f1.interval': 'few chats'}
    """
    reasons: dict[str, str] = {}
    for name, estimate in estimates.items():
        if estimate.value is None:
            reasons[name] = estimate.reason
        elif estimate.interval is None:
            reasons[f"{name}.interval"] = estimate.reason
    return reasons
