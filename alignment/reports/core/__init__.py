"""The alignment report, from answer codes to its JSON body."""

from alignment.comparison.core.codes import (
    CONSENSUS,
    EACH_RATER,
    CriterionData,
    CriterionSpec,
    HumanCode,
    JudgeCode,
    ReportData,
)
from alignment.reports.core.body import build_report
from alignment.reports.core.disagreements import Pair, disagreeing

__all__ = [
    "CONSENSUS",
    "EACH_RATER",
    "CriterionData",
    "CriterionSpec",
    "HumanCode",
    "JudgeCode",
    "Pair",
    "ReportData",
    "build_report",
    "disagreeing",
]
