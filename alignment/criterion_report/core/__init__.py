"""One criterion of a run in detail: topics and lengths, raters, calibration."""

from alignment.criterion_report.core.calibration import Diagram, diagram, probabilities
from alignment.criterion_report.core.parts import by_part, length_bins, length_range
from alignment.criterion_report.core.raters import rater_comparison

__all__ = [
    "Diagram",
    "by_part",
    "diagram",
    "length_bins",
    "length_range",
    "probabilities",
    "rater_comparison",
]
