"""Gate policy: named and versioned limits."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import Any

from common.problems import FieldProblem

SHARES = (
    "family_alpha",
    "pooled_alpha",
    "bound_alpha",
    "pooled_margin",
    "largest_drop",
    "class_alpha",
    "single_alpha",
    "single_margin",
    "floor",
    "ceiling_gap",
    "largest_left_out",
)
LONGEST_NAME = 120
COUNTS = ("version", "single_minimum", "openings_warning")
# Parameters of version 1 in stored policies: the smaller loss tolerated from `single_many` chats, and the
# number of chats of one human answer from which the guard applied.
RETIRED = frozenset({"class_minimum", "single_many", "single_margin_many"})


@dataclass(frozen=True)
class GatePolicy:
    """Limits of the gate; a changed limit makes a new version. Shares are between 0 and 1.

    family_alpha : one-sided level of the tests of single criteria, over all of them (Holm).
    pooled_alpha : one-sided level of the test of the mean over criteria.
    bound_alpha : one-sided level of the bounds that rule out harm.
    pooled_margin, largest_drop : tolerated loss of the mean; tolerated observed loss of one criterion.
    class_alpha : one-sided level of the guards on human True and human False together, half for each.
    single_alpha : one-sided level of the test of a criterion released alone.
    single_minimum, single_margin : chats that one criterion alone needs to pass; its tolerated loss.
    floor, ceiling_gap : minimum TPR and TNR; maximum distance of balanced accuracy from the human ceiling.
        They block where the candidate is worse than the champion (in balanced accuracy by more than
        `pooled_margin`); elsewhere they are cautions.
    largest_left_out : maximum share of labelled chats without a verdict.
    confirm : whether a FAIL needs a second run of the candidate.
    authors_release : whether prompt authors may release a candidate that passed.
    openings_warning : uses of a holdout for one criterion from which pages warn.

    Raises
    ------
    FieldProblem : if a limit is out of range; names the limit.

    Examples
    --------
    >>> GatePolicy().label
    'start values, version 2'
    """

    name: str = "start values"
    version: int = 2
    family_alpha: float = 0.025
    pooled_alpha: float = 0.025
    bound_alpha: float = 0.05
    pooled_margin: float = 0.02
    largest_drop: float = 0.08
    class_alpha: float = 0.05
    single_alpha: float = 0.05
    single_minimum: int = 100
    single_margin: float = 0.08
    floor: float = 0.70
    ceiling_gap: float = 0.10
    largest_left_out: float = 0.05
    confirm: bool = True
    authors_release: bool = False
    openings_warning: int = 5

    def __post_init__(self) -> None:
        for name in SHARES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise FieldProblem(name, "must be a number between 0 and 1")
        for name in COUNTS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise FieldProblem(name, "must be a whole number, 1 or more")
        for name in ("confirm", "authors_release"):
            if not isinstance(getattr(self, name), bool):
                raise FieldProblem(name, "must be true or false")
        if not isinstance(self.name, str) or not 0 < len(self.name.strip()) <= LONGEST_NAME:
            raise FieldProblem("name", f"must be a text of at most {LONGEST_NAME} characters")

    @classmethod
    def from_json(cls, parameters: Mapping[str, Any]) -> "GatePolicy":
        """Build a policy from parameters; missing ones keep their start values.

        Raises FieldProblem for an unknown parameter or a value out of range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(parameters) - known):
            raise FieldProblem(
                unknown[0], f"is not a parameter of the gate. Known parameters: {', '.join(sorted(known))}"
            )
        return cls(**parameters)

    @classmethod
    def from_stored(cls, parameters: Mapping[str, Any]) -> "GatePolicy":
        """Build a policy from a stored version, without the parameters of earlier rules.

        >>> GatePolicy.from_stored({"version": 1, "single_margin": 0.1, "single_many": 300}).single_margin
        0.1
        """
        return cls.from_json({name: value for name, value in parameters.items() if name not in RETIRED})

    def as_json(self) -> dict[str, Any]:
        """Return all parameters by name."""
        return asdict(self)

    @property
    def together_minimum(self) -> int:
        """Chats that several criteria need to pass.

        With fewer, even a test in which no verdict changes cannot rule out `largest_drop` (Tango's bound).

        >>> GatePolicy().together_minimum
        32
        """
        z = NormalDist().inv_cdf(1 - self.bound_alpha)
        return math.floor(z * z * (1 - self.largest_drop) / self.largest_drop) + 1

    @property
    def label(self) -> str:
        """`start values, version 2`."""
        return f"{self.name}, version {self.version}"
