"""Whether what an engine did was right: changes of reflection, sides taken, verdicts on suspect chats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion

SIDES = ("customer", "support", "neither")
ANSWERS = {True: "true", False: "false", None: "not_applicable"}


@dataclass(frozen=True)
class Counted:
    """Verdicts that are alike, all read, on chats that people answered True or False.

    Parameters
    ----------
    human : what people answered.
    value : the verdict; None = not applicable.
    first : the draft's verdict where `reflected`; None = not applicable.
    reflected : a draft was read before the verdict.
    side : whose case the Judge followed: customer, support, neither; '' where there was no debate.
    passes_when : the answer that is good for the chatbot.
    suspect : the chat has a flag that it may be hostile.
    n : how many.
    """

    human: bool
    value: bool | None
    first: bool | None
    reflected: bool
    side: str
    passes_when: bool
    suspect: bool
    n: int

    @property
    def owed_to(self) -> str:
        """The side whose answer people gave: the customer's is the failing one."""
        return "support" if self.human is self.passes_when else "customer"


def engine_against_people(rows: Sequence[Counted]) -> dict[str, Any]:
    """What reflection, debate and suspicion are worth against people's answers.

    Parameters
    ----------
    rows : counts of verdicts, in any order.

    Returns
    -------
    dict : `reflection` (None without drafts): `fixed` changes went from wrong to right, `broken` from right
        to wrong, `other` stayed wrong; `fixed_share` is fixed among fixed and broken, by first verdict in
        `by_first`. `debate` (None without one): `taken`, counts by side taken and side that people's answer
        speaks for, and `right` by side taken. `suspect`: accuracy on chats that may be hostile and on the
        others, each with n; a verdict of not applicable is wrong there, as people gave an answer. Intervals
        are Wilson's.

    Examples
    --------
    >>> change = Counted(True, True, False, True, "", True, False, 3)
    >>> engine_against_people([change])["reflection"]["fixed"]
    3
    """
    return {
        "reflection": _reflection([row for row in rows if row.reflected]),
        "debate": _debate([row for row in rows if row.side]),
        "suspect": {
            "flagged": _accuracy([row for row in rows if row.suspect]),
            "others": _accuracy([row for row in rows if not row.suspect]),
        },
    }


def _sum(rows: Sequence[Counted], holds: Callable[[Counted], bool]) -> int:
    return sum(row.n for row in rows if holds(row))


def _reflection(rows: Sequence[Counted]) -> dict[str, Any] | None:
    if not rows:
        return None
    return _changes(rows) | {
        "by_first": {
            name: _changes([row for row in rows if row.first is value]) for value, name in ANSWERS.items()
        }
    }


def _changes(rows: Sequence[Counted]) -> dict[str, Any]:
    changed = [row for row in rows if row.first is not row.value]
    fixed = _sum(changed, lambda row: row.value is row.human)
    broken = _sum(changed, lambda row: row.first is row.human)
    return {
        "n": sum(row.n for row in rows),
        "fixed": fixed,
        "broken": broken,
        "other": sum(row.n for row in changed) - fixed - broken,
        "fixed_share": _share(fixed, fixed + broken, "no change that people's answers decide"),
    }


def _debate(rows: Sequence[Counted]) -> dict[str, Any] | None:
    if not rows:
        return None
    taken = {
        side: {
            owed: _sum(rows, lambda row, side=side, owed=owed: (row.side, row.owed_to) == (side, owed))  # type: ignore[misc]
            for owed in ("customer", "support")
        }
        for side in SIDES
    }
    return {
        "taken": taken,
        "right": {
            side: _share(taken[side][side], sum(taken[side].values()), "never sided with it")
            for side in ("customer", "support")
        },
    }


def _accuracy(rows: Sequence[Counted]) -> dict[str, Any]:
    n = sum(row.n for row in rows)
    right = _sum(rows, lambda row: row.value is row.human)
    return {"n": n, "right": right, "accuracy": _share(right, n, "no such verdict")}


def _share(hits: int, n: int, reason: str) -> dict[str, Any]:
    found: Estimate = proportion(hits, n, reason=reason)
    return found.as_json()
