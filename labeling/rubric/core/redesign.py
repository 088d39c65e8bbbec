"""A redesign of criteria: which ones retire, which replace them, which labels carry over."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from common.jsonl import Fields, Ignored
from common.problems import FieldProblem, shown
from labeling.rubric.core.rubric import CriterionSpec, check_once, criterion_of

Kind = Literal["retire", "replace", "split", "merge"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST = 10
REASON_LIMIT = 10_000
# Kind → permitted numbers of retired criteria and of new criteria.
SIZES: Mapping[Kind, tuple[range, range]] = {
    "retire": (range(1, 2), range(1)),
    "replace": (range(1, 2), range(1, 2)),
    "split": (range(1, 2), range(2, MOST + 1)),
    "merge": (range(2, MOST + 1), range(1, 2)),
}


@dataclass(frozen=True, slots=True)
class Successor:
    """A new criterion; labels of the criteria in `carries` (keys) carry over to it."""

    spec: CriterionSpec
    carries: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Redesign:
    """
    The parameters of a redesign.

    `olds` are keys of the criteria to retire. `same_answers`: the lead confirms that True and False mean the
    same in the old and the new question wherever labels carry over; labels are never inverted.
    """

    kind: Kind
    olds: tuple[str, ...]
    into: tuple[Successor, ...] = ()
    same_answers: bool = False

    @property
    def carries(self) -> bool:
        """Whether any labels carry over."""
        return any(successor.carries for successor in self.into)


def successor_of(data: Mapping[str, Any], n: int, dimensions: Collection[str]) -> Successor:
    """
    Validate the `n`-th new criterion: the fields of one in a rubric file, and `carries`.

    Raises FieldProblem at `into[n]`.

    Examples
    --------
    >>> text = {"question": "Q?", "definition": "D.", "tier": "simple", "dimension": "manners"}
    >>> successor_of({"key": "polite", "carries": ["kind"], **text}, 0, ["manners"]).carries
    frozenset({'kind'})
    """
    fields = {name: value for name, value in data.items() if name != "carries"}
    spec = criterion_of(Fields(fields, f"into[{n}]"), dimensions, Ignored())
    return Successor(spec, frozenset(data.get("carries", ())))


def redesign_check(redesign: Redesign) -> None:
    """
    Refuse a redesign that is not valid for any criteria.

    Raises
    ------
    FieldProblem
        at `others` (the other criteria of a merge), `into`, one of its fields, or `same_answers`. Labels of
        an old criterion carry over to one new criterion at most.

    Examples
    --------
    >>> redesign_check(Redesign("retire", ("polite",)))
    >>> redesign_check(Redesign("merge", ("polite",)))
    Traceback (most recent call last):
    common.problems.FieldProblem: others: a merge takes 2 to 10 criteria, not 1
    """
    ending, keys = SIZES[redesign.kind]
    _check_number("others", redesign.kind, ending, "criteria", len(set(redesign.olds)))
    _check_number("into", redesign.kind, keys, "new questions", len(redesign.into))
    check_once("into", [successor.spec.key for successor in redesign.into])
    for n, successor in enumerate(redesign.into):
        if unknown := sorted(successor.carries - set(redesign.olds)):
            raise FieldProblem(f"into[{n}].carries", f"{shown(unknown[0])} is not retired by this redesign")
    _check_carried_once(redesign.into)
    if redesign.carries and not redesign.same_answers:
        raise FieldProblem(
            "same_answers",
            "labels carry over only where True and False mean the same in both questions: confirm this",
        )


def _check_carried_once(into: Sequence[Successor]) -> None:
    """Refuse the same labels for two new questions: these would always have the same answer."""
    takers: dict[str, str] = {}
    for n, successor in enumerate(into):
        for key in sorted(successor.carries):
            if key in takers:
                raise FieldProblem(
                    f"into[{n}].carries",
                    f"labels of {key} already carry over to {takers[key]}: two questions with the same"
                    " answers are one question",
                )
            takers[key] = successor.spec.key


def _check_number(field: str, kind: str, permitted: range, what: str, number: int) -> None:
    if number not in permitted:
        least, most = permitted[0], permitted[-1]
        numbers = f"{least}" if least == most else f"{least} to {most}"
        raise FieldProblem(field, f"a {kind} takes {numbers} {what}, not {number}")
