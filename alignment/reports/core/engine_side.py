"""An engine's steps compared with the human answers: reflection, debate, suspect chats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion
from evaluation.engines.core.roles import ADVOCATES, NEITHER, advocate_for

ANSWERS = {True: "true", False: "false", None: "not_applicable"}


@dataclass(frozen=True)
class VerdictCount:
    """The number of readable verdicts of one kind, on chats with a human True or False.

    Parameters
    ----------
    human : the human answer.
    value : the verdict; None = not applicable.
    first : the draft's verdict if `reflected`; None = not applicable.
    reflected : whether a draft was read before the verdict.
    side : the side that the Judge took, as in `sides`; '' without a debate.
    passes_when : the answer that is good for the chatbot.
    suspect : whether the chat is flagged as suspect (possible prompt injection).
    n : the number of verdicts.
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
    def right_side(self) -> str:
        """The advocate who argues for the human answer."""
        return advocate_for(self.human, passes_when=self.passes_when)


def sides() -> tuple[str, ...]:
    """Return the sides that a Judge can take.

    Examples
    --------
    >>> sides()
    ('customer', 'support', 'neither')
    """
    return (*(role.key for role in ADVOCATES), NEITHER)


def engine_against_humans(rows: Sequence[VerdictCount]) -> dict[str, Any]:
    """Compare reflection, debate and verdicts on suspect chats with the human answers.

    Parameters
    ----------
    rows : counts of verdicts, in any order.

    Returns
    -------
    dict : `reflection` (None without drafts): `fixed` changes went from wrong to right, `broken` from right
        to wrong, `other` stayed wrong. `fixed_share` is fixed / (fixed + broken); `by_first` has the same by
        first verdict. `debate` (None without one): `taken` counts by side taken and right side, `right` is
        the share by side taken. `suspect`: accuracy on suspect chats and on the others, each with n; there a
        verdict of not applicable is wrong, because a human answer exists. Intervals are Wilson's.

    Examples
    --------
    >>> change = VerdictCount(True, True, False, True, "", True, False, 3)
    >>> engine_against_humans([change])["reflection"]["fixed"]
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


def _sum(rows: Sequence[VerdictCount], holds: Callable[[VerdictCount], bool]) -> int:
    return sum(row.n for row in rows if holds(row))


def _reflection(rows: Sequence[VerdictCount]) -> dict[str, Any] | None:
    if not rows:
        return None
    return _changes(rows) | {
        "by_first": {
            name: _changes([row for row in rows if row.first is value]) for value, name in ANSWERS.items()
        }
    }


def _changes(rows: Sequence[VerdictCount]) -> dict[str, Any]:
    changed = [row for row in rows if row.first is not row.value]
    fixed = _sum(changed, lambda row: row.value is row.human)
    broken = _sum(changed, lambda row: row.first is row.human)
    return {
        "n": sum(row.n for row in rows),
        "fixed": fixed,
        "broken": broken,
        "other": sum(row.n for row in changed) - fixed - broken,
        "fixed_share": _share(fixed, fixed + broken, "no change between a right and a wrong verdict"),
    }


def _debate(rows: Sequence[VerdictCount]) -> dict[str, Any] | None:
    if not rows:
        return None
    advocates = [role.key for role in ADVOCATES]
    taken = {
        side: {
            right: sum(row.n for row in rows if (row.side, row.right_side) == (side, right))
            for right in advocates
        }
        for side in sides()
    }
    return {
        "taken": taken,
        "right": {
            side: _share(taken[side][side], sum(taken[side].values()), "the Judge never took this side")
            for side in advocates
        },
    }


def _accuracy(rows: Sequence[VerdictCount]) -> dict[str, Any]:
    n = sum(row.n for row in rows)
    right = _sum(rows, lambda row: row.value is row.human)
    return {"n": n, "right": right, "accuracy": _share(right, n, "no verdict on these chats")}


def _share(hits: int, n: int, reason: str) -> dict[str, Any]:
    share: Estimate = proportion(hits, n, reason=reason)
    return share.as_json()
