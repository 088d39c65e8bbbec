"""Reads what the simulated judge answers as the engine `direct` does, where it has its usual form."""

import re
from collections.abc import Sequence

from evaluation.core.types import Chat, Criterion, VerdictResult
from evaluation.engines.core.injection_detection import chat_flags

_BLOCK = "VERDICTS"
_VALUES = {"TRUE": True, "FALSE": False, "NOT_APPLICABLE": None}
# A quote of two words or more; the simulated judge copies it from the message that it names.
_QUOTE = re.compile(r'Evidence: \[m\d+: "(?:[^\s"\]]*[A-Za-z][^\s"\]]* ){1,}[^"\]]*[A-Za-z][^"\]]*"\] ')


def plain_verdicts(
    text: str, *, chat: Chat, criteria: Sequence[Criterion]
) -> tuple[VerdictResult, ...] | None:
    """Return the verdicts of an answer; None where anything about it is out of the ordinary.

    The engine takes ten times as long, because it reads what any model may write.
    """
    *sections, block = text.split("\n\n")
    heading, *lines = block.split("\n")
    prose = dict(section.split("\n", 1) for section in sections if "\n" in section)
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    keys = {criterion.key for criterion in criteria}
    if heading != _BLOCK or not keys == prose.keys() == values.keys() or len(sections) != len(keys):
        return None
    if any(_VALUES[values[one.key]] is None and not one.allow_na for one in criteria):
        return None
    if not all(map(_QUOTE.match, prose.values())):
        return None
    return tuple(
        VerdictResult(
            criterion=key,
            state="read",
            value=_VALUES[values[key]],
            explanation=prose[key],
            flags=chat_flags(chat),
            quotes=1,
            quotes_verified=1,
        )
        for key in (criterion.key for criterion in criteria)
    )
