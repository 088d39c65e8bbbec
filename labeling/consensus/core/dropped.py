"""Labels that stopped counting when a criterion's text changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DroppedLabels:
    """Submitted labels on one criterion that answer an older text than the one that counts.

    `versions` are the older texts' numbers in ascending order, `counting` the number of the newest text
    whose labels count.
    """

    key: str
    labels: int
    versions: Sequence[int]
    counting: int

    @property
    def words(self) -> str:
        """One sentence without its full stop.

        Examples
        --------
        >>> DroppedLabels("polite", 11, (1,), 2).words
        '11 labels on polite no longer count: they answer version 1 of its text, not version 2'
        >>> DroppedLabels("polite", 1, (1,), 2).words
        '1 label on polite no longer counts: it answers version 1 of its text, not version 2'
        """
        one = self.labels == 1
        *first, last = map(str, self.versions)
        numbers = f"versions {', '.join(first)} and {last}" if first else f"version {last}"
        return (
            f"{self.labels:,} label{'' if one else 's'} on {self.key} no longer count{'s' if one else ''}: "
            f"{'it answers' if one else 'they answer'} {numbers} of its text, not version {self.counting}"
        )

    def as_json(self) -> dict[str, Any]:
        """`labels`, `versions`, `counting`."""
        return {"labels": self.labels, "versions": list(self.versions), "counting": self.counting}
