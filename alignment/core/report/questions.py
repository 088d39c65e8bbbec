"""Whether labels and judge answer the same text of a criterion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answered:
    """So many labels answer one question; `version` is the newest text that asks it.

    `same`: whether the judge was asked it too; None without a judge whose question is known.
    """

    version: int
    labels: int
    same: bool | None


@dataclass(frozen=True)
class Questions:
    """What the labels of a criterion answer, oldest question first, and the version the judge was asked."""

    judge: int | None = None
    labels: Sequence[Answered] = ()

    @property
    def words(self) -> str:
        """
        What has to be said; '' where all answer one question.

        Examples
        --------
        >>> Questions(3, (Answered(2, 40, False),)).words
        'labels answer version 2, the judge was asked version 3'
        >>> Questions(3, (Answered(2, 40, False), Answered(3, 12, True))).words
        '40 of 52 labels answer version 2, the judge was asked version 3'
        >>> Questions(None, (Answered(2, 40, None), Answered(3, 12, None))).words
        'labels answer different questions: 40 version 2, 12 version 3'
        """
        if self.judge is None:
            told = ", ".join(f"{one.labels:,} version {one.version}" for one in self.labels)
            return f"labels answer different questions: {told}" if len(self.labels) > 1 else ""
        others = [one for one in self.labels if not one.same]
        if not others:
            return ""
        total, differing = (sum(one.labels for one in some) for some in (self.labels, others))
        who = "labels" if differing == total else f"{differing:,} of {total:,} labels"
        versions = " and ".join(str(one.version) for one in others)
        answered = f"version{'s' if len(others) > 1 else ''} {versions}"
        return f"{who} answer {answered}, the judge was asked version {self.judge}"

    def as_json(self) -> dict[str, Any]:
        """`judge`, `labels` by question, `words`."""
        labels = [{"version": one.version, "labels": one.labels, "same": one.same} for one in self.labels]
        return {"judge": self.judge, "labels": labels, "words": self.words}
