"""How a corrected pass rate came about, in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template

register = template.Library()

METHODS = {
    "ppi": "PPI++, labels drawn at random",
    "rogan_gladen": "Rogan–Gladen",
    "weighting": "labels drawn by verdict, weighted",
}
SIDES = {"human": "people", "judge_corrected": "corrected"}


@register.filter
def any_corrected(criteria: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a rate of these criteria is corrected, by a method that is told."""
    return any(row.get("corrected_by") for row in criteria)


@register.filter
def correction(method: str | None) -> str:
    """The method by its name; '' without one, and in reports stored before it was told."""
    return METHODS.get(method or "", "")


@register.filter
def narrower(rates: Mapping[str, Any]) -> str:
    """Whose interval is the narrower, people's own or the corrected one; '' where one is missing or odd."""
    widths = {
        words: rate["high"] - rate["low"]
        for side, words in SIDES.items()
        if (rate := rates[side]) and rate["low"] is not None and "flag" not in rate
    }
    if len(widths) < len(SIDES) or len(set(widths.values())) == 1:
        return ""
    return min(widths, key=lambda words: widths[words])
