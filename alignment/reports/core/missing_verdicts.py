"""Notices about chats without a verdict: of an imported judge, or of a run that has not ended."""

from collections.abc import Mapping, Sequence
from typing import Any

NAMED = 3
NO_VERDICT = "have no verdict"
NOT_YET = "not judged yet"


def missing_verdicts(criteria: Sequence[Mapping[str, Any]], *, chats: int) -> list[str]:
    """Return a notice if chats have no verdict, labelled or not; with criteria named where they differ.

    A criterion is named by its `name` if it has one, else by its key.

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
    return _notice(criteria, "without_verdict", "has no verdict" if chats == 1 else NO_VERDICT, chats)


def not_judged_yet(criteria: Sequence[Mapping[str, Any]], *, chats: int) -> list[str]:
    """Return a notice if verdicts of the run may still come; the parameters are those of `missing_verdicts`.

    Examples
    --------
    >>> not_judged_yet([{"key": "polite", "not_judged_yet": 200}], chats=400)
    ['200 of 400 chats not judged yet']
    """
    return _notice(criteria, "not_judged_yet", NOT_YET, chats)


def pending_caution(missing: int, *, chats: int) -> str:
    """Return the caution of a criterion with chats that are not judged yet; '' without any.

    >>> pending_caution(200, chats=400)
    '200 of 400 chats not judged yet: the figures may change'
    """
    return f"{missing:,} of {_chats(chats)} {NOT_YET}: the figures may change" if missing else ""


def _notice(criteria: Sequence[Mapping[str, Any]], count: str, words: str, chats: int) -> list[str]:
    missing = [(int(row.get(count) or 0), str(row.get("name", row["key"]))) for row in criteria]
    numbers = {n for n, _ in missing}
    if not any(numbers):
        return []
    if len(numbers) == 1:
        return [f"{numbers.pop():,} of {_chats(chats)} {words}"]
    ordered = sorted((one for one in missing if one[0]), key=lambda one: -one[0])
    (most, first), *others = ordered[:NAMED]
    parts = [f"{most:,} of {_chats(chats)} {words} on {first}", *(f"{n:,} on {name}" for n, name in others)]
    if (rest := len(ordered) - NAMED) > 0:
        parts.append(f"fewer on {rest} more criteri{'on' if rest == 1 else 'a'}")
    return [", ".join(parts)]


def _chats(number: int) -> str:
    return f"{number:,} chat{'' if number == 1 else 's'}"
