"""Answers without True or False, in words; and what to do about those that nobody can read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


# Answers without a readable verdict, by state, and what to do about each.
REMEDIES = {
    "cut_off": "raise the room for answers or change the model",
    "unparsed": "change the model or the formatter model",
    "refused": "change the model",
    "too_long": "judge long chats in windows or change the model",
}


@dataclass(frozen=True, slots=True)
class UnusableAnswers:
    """Answers of one judge on one criterion that nobody can read.

    side : `after` is the candidate, `before` the champion. of : compared chats. states : chats by state.
    """

    key: str
    side: str
    of: int
    states: Mapping[str, int]

    @property
    def chats(self) -> int:
        """The number of chats without a usable answer."""
        return sum(self.states.values())

    @property
    def words(self) -> str:
        """The number of chats with the causes, the most frequent one first.

        >>> UnusableAnswers("polite", "after", 10, {"cut_off": 10}).words
        'no usable answer on 10 of 10 chats: cut off'
        >>> UnusableAnswers("polite", "after", 40, {"unparsed": 2, "cut_off": 7}).words
        'no usable answer on 9 of 40 chats: 7 cut off, 2 unreadable'
        """
        ordered = dict(sorted(self.states.items(), key=lambda item: -item[1]))
        causes = state_words(ordered) if len(ordered) > 1 else STATE_WORDS[next(iter(ordered))]
        return f"no usable answer on {self.chats:,} of {self.of:,} chats: {causes}"

    @property
    def remedy(self) -> str:
        """What to do about the most frequent cause."""
        return remedy_of(self.states)


def remedy_of(states: Mapping[str, int]) -> str:
    """Return what to do about the most frequent unreadable state; '' without any.

    >>> remedy_of({"failed": 9, "cut_off": 2, "refused": 1})
    'raise the room for answers or change the model'
    >>> remedy_of({"failed": 9})
    ''
    """
    unread = {state: n for state, n in states.items() if n and state in REMEDIES}
    return REMEDIES[max(unread, key=lambda state: unread[state])] if unread else ""


def unusable_answers(criteria: Iterable[Mapping[str, Any]], *, limit: float) -> list[UnusableAnswers]:
    """Return where answers that nobody can read are more than a share `limit`, or most of what broke.

    Parameters
    ----------
    criteria : those of a stored result. The most chats come first, the candidate before the champion.

    Examples
    --------
    >>> judges = {"before": {"no_verdict_by": {}}, "after": {"no_verdict_by": {"cut_off": 3, "failed": 1}}}
    >>> (found,) = unusable_answers([{"key": "polite", "n": 10, "broken": 3} | judges], limit=0.1)
    >>> found.side, found.words
    ('after', 'no usable answer on 3 of 10 chats: cut off')
    """
    found = []
    for row in criteria:
        for side in ("after", "before"):
            counts = row[side].get("no_verdict_by") or {}
            states = {state: n for state, n in counts.items() if n and state in REMEDIES}
            chats = sum(states.values())
            breaks = side == "after" and 2 * chats > row["broken"] > 0
            if chats and (chats > limit * row["n"] or breaks):
                found.append(UnusableAnswers(row["key"], side, row["n"], states))
    return sorted(found, key=lambda one: (one.side != "after", -one.chats))
