"""Correction method of pass rates, in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template

register = template.Library()

METHODS = {
    "ppi": "PPI++, randomly sampled labels",
    "rogan_gladen": "Rogan–Gladen",
    "weighting": "weighted, labels sampled by verdict",
}
SIDES = {"human": "raters", "judge_corrected": "corrected"}


@register.filter
def any_corrected(criteria: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any rate of these criteria has a correction method."""
    return any(row.get("corrected_by") for row in criteria)


@register.filter
def correction(method: str | None) -> str:
    """Name of the method; '' without one, and in older stored reports."""
    return METHODS.get(method or "", "")


@register.filter
def narrower(rates: Mapping[str, Any]) -> str:
    """The rate with the narrower interval, human or corrected; '' if one is missing or flagged."""
    widths = {
        words: rate["high"] - rate["low"]
        for side, words in SIDES.items()
        if (rate := rates[side]) and rate["low"] is not None and "flag" not in rate
    }
    if len(widths) < len(SIDES) or len(set(widths.values())) == 1:
        return ""
    return min(widths, key=lambda words: widths[words])
