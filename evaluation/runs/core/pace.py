"""How long model calls were under way, from the times they were sent and answered."""

from collections.abc import Iterable
from datetime import datetime

# A longer time without a request is a pause, not the endpoint's pace.
PAUSE_SECONDS = 15.0


def busy_seconds(spans: Iterable[tuple[datetime, datetime]]) -> float:
    """Return the seconds during which calls were under way; parallel calls count once, pauses do not count.

    Parameters
    ----------
    spans : (sent, ended) of each call, in any order.

    Examples
    --------
    >>> from datetime import timedelta
    >>> start = datetime(2026, 1, 1)
    >>> at = [start + timedelta(seconds=n) for n in range(100)]
    >>> busy_seconds([(at[0], at[4]), (at[1], at[3]), (at[6], at[9]), (at[80], at[85])])
    14.0
    """
    total, until = 0.0, None
    for sent, ended in sorted(spans):
        if until is None or (sent - until).total_seconds() > PAUSE_SECONDS:
            until = sent
        total += max(0.0, (ended - until).total_seconds())
        until = max(until, ended)
    return total
