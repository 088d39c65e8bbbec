"""A notice about chats that an imported judge has no verdict on."""

from collections.abc import Mapping, Sequence
from typing import Any

NAMED = 3


def missing_verdicts(criteria: Sequence[Mapping[str, Any]], *, chats: int) -> list[str]:
    """Return a notice if chats have no verdict, labelled or not; with criteria named where they differ.

    Parameters
    ----------
    criteria : the report's criteria; those of a report stored without `without_verdict` count as complete.
    chats : number of chats in the report.

    Examples
    --------
    >>> missing_verdicts([{"key": "polite", "without_verdict": 178}], chats=400)
    ['178 of 400 chats have no verdict']
    >>> missing_verdicts([{"key": "polite", "without_verdict": 0},
    ...                   {"key": "refund", "without_verdict": 20}], chats=400)
    ['20 of 400 chats have no verdict on refund']
    """
    missing = {row["key"]: row.get("without_verdict") or 0 for row in criteria}
    if not any(missing.values()):
        return []
    if len(set(missing.values())) == 1:
        return [f"{next(iter(missing.values())):,} of {_no_verdict(chats)}"]
    ordered = sorted(((n, key) for key, n in missing.items() if n), key=lambda one: -one[0])
    (most, first), *others = ordered[:NAMED]
    words = [f"{most:,} of {_no_verdict(chats)} on {first}", *(f"{n:,} on {key}" for n, key in others)]
    if (rest := len(ordered) - NAMED) > 0:
        words.append(f"fewer on {rest} more criteri{'on' if rest == 1 else 'a'}")
    return [", ".join(words)]


def _no_verdict(chats: int) -> str:
    return f"{chats:,} chat{' has' if chats == 1 else 's have'} no verdict"
