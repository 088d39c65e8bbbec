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
    """What decides in which group a criterion is judged."""

    key: str
    dimension: str
    tier: Tier
    critical: bool


def group_criteria(criteria: Sequence[Groupable], *, mode: Grouping) -> Groups:
    """Return the keys of each call's criteria, in the rubric's order.

    `auto`: context, subjective and critical criteria alone, simple ones of one dimension up to four a call.

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
