"""Answers without True or False, in words."""

from collections.abc import Mapping
from typing import Any

STATE_WORDS = {
    "cut_off": "cut off",
    "unparsed": "unreadable",
    "refused": "refused",
    "too_long": "too long",
    "not_applicable": "not applicable",
    "none": "missing",
}


def no_verdict_words(judge: Mapping[str, Any]) -> str:
    """Return the number of answers without True or False of one judge's JSON, by state.

    >>> no_verdict_words({"no_verdict": 14, "no_verdict_by": {"cut_off": 12, "not_applicable": 2}})
    '14 (12 cut off, 2 not applicable)'
    >>> no_verdict_words({"no_verdict": 3})
    '3'
    """
    states = state_words(judge.get("no_verdict_by") or {})
    return f"{judge['no_verdict']:,} ({states})" if states else f"{judge['no_verdict']:,}"


def state_words(counts: Mapping[str, int]) -> str:
    """Return counts by state: `12 cut off, 2 unreadable`."""
    return ", ".join(f"{n:,} {STATE_WORDS.get(state, state)}" for state, n in counts.items())
