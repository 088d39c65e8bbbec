"""Which criteria share a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.core.types import Tier

Grouping = Literal["criterion", "dimension", "rubric", "auto"]
Groups = tuple[tuple[str, ...], ...]

LARGEST_AUTO_GROUP = 4


@dataclass(frozen=True, slots=True)
class Groupable:
    """The properties of a criterion that decide its group."""

    key: str
    dimension: str
    tier: Tier
    critical: bool


def group_criteria(criteria: Sequence[Groupable], *, mode: Grouping) -> Groups:
    """Group criteria that share a call.

    Parameters
    ----------
    criteria : in the rubric's order.
    mode : `criterion`, `dimension` or `rubric` share as named. `auto` keeps context, subjective and critical
        criteria alone and joins up to four simple ones of one dimension.

    Returns
    -------
    The keys of each call, in the rubric's order; every key occurs once. Empty without criteria.

    Examples
    --------
    >>> simple = [Groupable(key, "compliance", "simple", key == "c") for key in "abc"]
    >>> group_criteria(simple, mode="auto")
    (('a', 'b'), ('c',))
    """
    groups: dict[object, list[str]] = {}
    for criterion in criteria:
        groups.setdefault(_group_of(criterion, mode=mode), []).append(criterion.key)
    largest = LARGEST_AUTO_GROUP if mode == "auto" else max(1, len(criteria))
    return tuple(
        tuple(keys[i : i + largest]) for keys in groups.values() for i in range(0, len(keys), largest)
    )


def _group_of(criterion: Groupable, *, mode: Grouping) -> tuple[str, ...]:
    alone = criterion.critical or criterion.tier != "simple"
    if mode == "criterion" or (mode == "auto" and alone):
        return "criterion", criterion.key
    return ("rubric",) if mode == "rubric" else ("dimension", criterion.dimension)
