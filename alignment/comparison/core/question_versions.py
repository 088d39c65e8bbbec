"""Whether labels and verdicts answer the same text of a criterion."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Questions:
    """Versions of a criterion's text that the judge and the labels answer.

    Only labels on one question count, so `labels` is the newest version with that question. None without
    labels, or if the judge's question is unknown. `same`: both versions ask the same question.
    """

    judge: int | None = None
    labels: int | None = None
    same: bool | None = None

    @property
    def words(self) -> str:
        """A caution for the reader; '' if both answer the same question.

        Examples
        --------
        >>> Questions(3, 2, same=False).words
        'labels answer version 2, verdicts answer version 3'
        >>> Questions(3, 2, same=True).words
        ''
        """
        if self.same is not False:
            return ""
        return f"labels answer version {self.labels}, verdicts answer version {self.judge}"

    def as_json(self) -> dict[str, Any]:
        """`judge`, `labels`, `same`, `words`."""
        return {"judge": self.judge, "labels": self.labels, "same": self.same, "words": self.words}
