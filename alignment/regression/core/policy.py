"""The gate's parameters: a named, versioned policy."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
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
    "single_margin_many",
    "floor",
    "ceiling_gap",
    "largest_left_out",
)
LONGEST_NAME = 120
COUNTS = ("version", "class_minimum", "single_minimum", "single_many", "openings_warning")


@dataclass(frozen=True)
class GatePolicy:
    """The limits of the gate; a changed limit is a new version. Shares are between 0 and 1.

    family_alpha : one-sided, over all criteria (Holm): a criterion got worse.
    pooled_alpha : one-sided: the mean over all criteria got worse.
    bound_alpha : one-sided, of the bounds that rule harm out.
    pooled_margin, largest_drop : a loss of the mean that is tolerated; of one criterion, as observed.
    class_alpha, class_minimum : one-sided, of the guard on one human answer; the chats it needs.
    single_alpha : one-sided: a criterion released alone got worse.
    single_minimum, single_margin : chats below which one criterion alone cannot pass; the loss tolerated.
    single_many, single_margin_many : from so many chats on a smaller loss is tolerated.
    floor, ceiling_gap : least TPR and TNR; how far balanced accuracy may lie under the human ceiling.
    largest_left_out : share of labelled chats that may lack a verdict for outer reasons.
    confirm : a FAIL is final only after a second run of the candidate.
    authors_release : prompt authors, too, may release what passed.
    openings_warning : from so many openings of a holdout for one criterion on its page warns.

    Raises
    ------
    FieldProblem : a limit outside its range, by name.

    Examples
    --------
    >>> GatePolicy().label
    'start values, version 1'
    """

    name: str = "start values"
    version: int = 1
    family_alpha: float = 0.025
    pooled_alpha: float = 0.025
    bound_alpha: float = 0.05
    pooled_margin: float = 0.02
    largest_drop: float = 0.08
    class_alpha: float = 0.05
    class_minimum: int = 30
    single_alpha: float = 0.05
    single_minimum: int = 100
    single_margin: float = 0.10
    single_many: int = 300
    single_margin_many: float = 0.05
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
        if self.single_many < self.single_minimum:
            raise FieldProblem("single_many", "must not be below single_minimum")

    @classmethod
    def from_json(cls, parameters: Mapping[str, Any]) -> "GatePolicy":
        """The policy that these parameters name; what they leave out keeps its start value.

        Raises FieldProblem for a name that is no parameter, and for values out of range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(parameters) - known):
            raise FieldProblem(
                unknown[0], f"is no parameter of the gate; there are {', '.join(sorted(known))}"
            )
        return cls(**parameters)

    def as_json(self) -> dict[str, Any]:
        """Every parameter by name."""
        return asdict(self)

    @property
    def label(self) -> str:
        """Name and version in words."""
        return f"{self.name}, version {self.version}"

    def single_delta(self, n: int) -> float:
        """The loss that is tolerated of a criterion released alone, at `n` chats."""
        return self.single_margin_many if n >= self.single_many else self.single_margin
