"""One criterion of a run in full: parts of the chats, raters, stated probabilities."""

from alignment.core.criterion_report.diagram import Diagram, diagram
from alignment.core.criterion_report.parts import by_part, length_bins, length_range
from alignment.core.criterion_report.people import people
from alignment.core.criterion_report.probabilities import probabilities

__all__ = ["Diagram", "by_part", "diagram", "length_bins", "length_range", "people", "probabilities"]
