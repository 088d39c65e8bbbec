"""Whether labels and judge answer the same text of a criterion."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Questions:
    """Versions of a criterion's text: the one the judge was asked, and the one that the labels answer.

    Labels count to one question only, so there is one such version at most: the newest that asks it. None
    without labels, and without a judge whose question is known. `same` where both ask one question.
    """

    judge: int | None = None
    labels: int | None = None
    same: bool | None = None

    @property
    def words(self) -> str:
        """
        What has to be said; '' where both answer one question.

        Examples
        --------
        >>> Questions(3, 2, same=False).words
        'labels answer version 2, the judge was asked version 3'
        >>> Questions(3, 2, same=True).words
        ''
        """
        if self.same is not False:
            return ""
        return f"labels answer version {self.labels}, the judge was asked version {self.judge}"

    def as_json(self) -> dict[str, Any]:
        """`judge`, `labels`, `same`, `words`."""
        return {"judge": self.judge, "labels": self.labels, "same": self.same, "words": self.words}
