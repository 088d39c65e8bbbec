"""The alignment report, with names for what CI jobs read; `document` is the whole of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What a criterion's status means for a job, by exit code.
ALIGNED, NOT_ALIGNED = "aligned", "not_aligned"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95% interval; `value` is None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """Write it as 0.92 (0.86 to 0.96)."""
        if self.value is None:
            return "-"
        interval = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.value:.2f}{interval}"


@dataclass(frozen=True, slots=True)
class CriterionAgreement:
    """How far judge and raters agree on one criterion; `status` is aligned, not_aligned or another."""

    key: str
    tier: str
    n: int
    status: str
    reasons: Sequence[str]
    balanced_accuracy: Estimate
    tpr: Estimate
    tnr: Estimate

    @property
    def blocks(self) -> bool:
        """Whether the criterion counts for a gate: subjective ones are for information only."""
        return self.tier != "subjective"


@dataclass(frozen=True, slots=True)
class Report:
    """An alignment report; docs/reference/api.md lists the keys of `document`."""

    document: Mapping[str, Any]

    @property
    def chats(self) -> int:
        """The number of chats."""
        return int(self.document["chats"])

    @property
    def criteria(self) -> list[CriterionAgreement]:
        """The criteria in the rubric's order."""
        return [_criterion(row) for row in self.document["criteria"]]

    @property
    def not_aligned(self) -> list[CriterionAgreement]:
        """The criteria on which the judge is measured and not aligned."""
        return [row for row in self.criteria if row.blocks and row.status == NOT_ALIGNED]

    @property
    def undecided(self) -> list[CriterionAgreement]:
        """The criteria without enough evidence: too few labels, or raters who disagree."""
        return [row for row in self.criteria if row.blocks and row.status not in (ALIGNED, NOT_ALIGNED)]


def _criterion(row: Mapping[str, Any]) -> CriterionAgreement:
    return CriterionAgreement(
        key=row["key"],
        tier=row["tier"],
        n=row["n"],
        status=row["status"] or "",
        reasons=row["reasons"] or (),
        balanced_accuracy=_estimate(row["balanced_accuracy"]),
        tpr=_estimate(row["tpr"]),
        tnr=_estimate(row["tnr"]),
    )


def _estimate(body: Mapping[str, Any] | None) -> Estimate:
    body = body or {}
    return Estimate(body.get("value"), body.get("low"), body.get("high"))
