"""The alignment report, from answer codes to its JSON body."""

from alignment.reports.core.body import build_report
from alignment.reports.core.disagreements import Pair, disagreement_places

__all__ = [
    "Pair",
    "build_report",
    "disagreement_places",
]
