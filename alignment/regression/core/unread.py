"""Answers without a readable verdict, named as the reason of a result, and in words."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from alignment.regression.core.evidence import UNREAD, CriterionEvidence, Evidence
from alignment.regression.core.gate import Decision, Gate

STATE_WORDS = {
    "cut_off": "cut off",
    "unparsed": "unreadable",
    "refused": "refused",
    "too_long": "too long",
    "not_applicable": "not applicable",
}
_UNREAD = tuple(code.name.lower() for code in UNREAD)


def with_unread_reasons(decision: Decision, evidence: Evidence) -> Decision:
    """Add a reason for each blocking criterion with unread answers of the candidate, unless it passed.

    The reason comes first where these answers are at least half of the broken chats: then the cause is the
    missing answers, not wrong ones.

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.regression.core import PairedVerdicts, count_evidence
    >>> human = np.repeat([0, 1], 10).astype(np.int8)
    >>> cut_off = np.where(np.arange(20) < 6, 5, human).astype(np.int8)
    >>> evidence = count_evidence([PairedVerdicts("polite", "simple", human, human, cut_off)])
    >>> with_unread_reasons(Decision(Gate.FAIL, ("polite got worse",)), evidence).reasons[0]
    'polite: 6 of 20 answers of the candidate are without a verdict (6 cut off), 6 of the 6 broken chats'
    """
    if decision.gate is Gate.PASS:
        return decision
    first: list[str] = []
    last: list[str] = []
    for row in evidence.blocking:
        for reason in _reason(row):
            (first if 2 * row.broken_unread >= row.broken else last).append(reason)
    return replace(decision, reasons=(*first, *decision.reasons, *last))


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


def _reason(row: CriterionEvidence) -> Iterator[str]:
    unread = {state: n for state, n in row.no_verdict_after.items() if state in _UNREAD}
    if total := sum(unread.values()):
        are = "is" if total == 1 else "are"
        broken = f", {row.broken_unread} of the {row.broken} broken chats" if row.broken_unread else ""
        yield (
            f"{row.key}: {total} of {row.n} answers of the candidate {are} without a verdict"
            f" ({state_words(unread)}){broken}"
        )
