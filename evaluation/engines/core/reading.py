"""From an answer to one reading per criterion, wherever it came from."""

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
    """One criterion's outcome of one answer, before it becomes a verdict."""

    state: VerdictState
    value: bool | None = None
    read_by: ReadBy = "rules"
    explanation: str = ""
    contradicts: bool = False
    flags: tuple[str, ...] = ()


def has_answer(reply: Reply) -> bool:
    """Return whether there is anything to read: a whole answer with words in it."""
    return reply.state == "answered" and bool(reply.text.strip())


def is_empty(reply: Reply) -> bool:
    """Return whether the model answered without saying anything."""
    blank = reply.state == "answered" and not reply.text.strip()
    return blank or (reply.state == "failed" and "empty" in reply.error)


def from_failed_reply(reply: Reply) -> Reading:
    """Return the reading of a reply that holds no whole answer. What was cut off is never read."""
    if reply.state == "answered":
        return Reading(state="failed", explanation="empty")
    return Reading(state=reply.state, explanation=reply.error)


def readings_by_rule(*, answer: Answer, keys: Sequence[str]) -> dict[str, Reading]:
    """Return the keys that the rules read, with the prose about each as its explanation."""
    return {
        key: Reading(state="read", value=value, explanation=about(key, text=answer.prose, keys=keys))
        for key, value in answer.values.items()
    }


def formatter_readings(
    *, reply: Reply, answer: Answer, unread: Sequence[Criterion], keys: Sequence[str]
) -> dict[str, Reading]:
    """Return what the formatter made of the unread keys: a value, unparsed, or failed if it never answered.

    Failed with the flag `formatter_failed` says that only the formatter has to be asked again.
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
    """Return what to know of a prose: a quote that is not in the chat, a message that speaks to the judge."""
    flags = []
    if not all(quote.found for quote in quotes):
        flags.append("unverified_quote")
    if _NOTE.search(text):
        flags.append("addresses_evaluation")
    return tuple(flags)
