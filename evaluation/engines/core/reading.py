"""Turns an answer into one reading per criterion, by rule or by the formatter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.types import Criterion, ReadBy, Reply, VerdictState
from evaluation.engines.core.prose import about
from evaluation.engines.core.quotes import Quote
from evaluation.engines.core.verdicts import Answer, read_formatter

_NOTE = re.compile(r"^\W*NOTE:\W*m\d+\W+addresses the evaluation", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reading:
    """One criterion's outcome in one answer, before it becomes a verdict."""

    state: VerdictState
    value: bool | None = None
    read_by: ReadBy = "rules"
    explanation: str = ""
    contradicts: bool = False
    flags: tuple[str, ...] = ()


def has_answer(reply: Reply) -> bool:
    """Return whether the reply is a complete, non-empty answer."""
    return reply.state == "answered" and bool(reply.text.strip())


def is_empty(reply: Reply) -> bool:
    """Return whether the model answered with no text."""
    blank = reply.state == "answered" and not reply.text.strip()
    return blank or (reply.state == "failed" and "empty" in reply.error.lower())


def from_failed_reply(reply: Reply) -> Reading:
    """Return the reading of a reply without a complete answer. A cut-off answer is never read."""
    if reply.state == "answered":
        return Reading(state="failed", explanation="the answer is empty")
    return Reading(state=reply.state, explanation=reply.error)


def readings_by_rule(*, answer: Answer, keys: Sequence[str]) -> dict[str, Reading]:
    """Return a reading for each key that the rules read, with the prose about it as explanation."""
    return {
        key: Reading(state="read", value=value, explanation=about(key, text=answer.prose, keys=keys))
        for key, value in answer.values.items()
    }


def formatter_readings(
    *, reply: Reply, answer: Answer, unread: Sequence[Criterion], keys: Sequence[str]
) -> dict[str, Reading]:
    """Return a reading for each unread key from the formatter's reply.

    Parameters
    ----------
    reply : the formatter's.
    answer : the rationale as the rules read it.
    unread : the criteria that the rules could not read.
    keys : all keys of the rationale.

    Returns
    -------
    By key: a value, `unparsed`, or `failed` if the formatter never answered. The flag `formatter_failed`
    means that only the formatter must be asked again.
    """
    copied = read_formatter(reply.text, criteria=unread) if reply.state == "answered" else {}
    flags = () if reply.state == "answered" else (f"formatter_{reply.state}",)
    readings = {}
    for criterion in unread:
        formatted = copied.get(criterion.key)
        state: VerdictState = "failed" if reply.state == "failed" else "unparsed"
        explanation = (
            formatted.explanation if formatted else about(criterion.key, text=answer.prose, keys=keys)
        )
        readings[criterion.key] = Reading(
            state="read" if formatted else state,
            value=formatted.value if formatted else None,
            read_by="formatter",
            explanation=explanation,
            contradicts=criterion.key in answer.contradictory,
            flags=flags,
        )
    return readings


def prose_flags(*, text: str, quotes: Sequence[Quote]) -> tuple[str, ...]:
    """Return the flags of a prose: a quote that is not in the chat, a message that addresses the judge."""
    flags = []
    if any(quote.match == "missing" for quote in quotes):
        flags.append("unverified_quote")
    if _NOTE.search(text):
        flags.append("addresses_evaluation")
    return tuple(flags)
