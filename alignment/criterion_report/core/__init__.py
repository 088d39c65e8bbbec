"""One criterion of a run in full: parts of the chats, raters, stated probabilities."""

from alignment.criterion_report.core.diagram import Diagram, diagram
from alignment.criterion_report.core.parts import by_part, length_bins, length_range
from alignment.criterion_report.core.people import people
from alignment.criterion_report.core.probabilities import probabilities

__all__ = ["Diagram", "by_part", "diagram", "length_bins", "length_range", "people", "probabilities"]
