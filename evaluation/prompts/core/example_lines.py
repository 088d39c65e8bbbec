"""The rules for the worked examples of a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.problems import FieldProblem

MOST_EXAMPLES = 4
MOST_TURNS = 6
LONGEST_RATIONALE = 2000


@dataclass(frozen=True, slots=True)
class ExampleShape:
    """One example without its text: turns (from 1), length of the chat, the raters' answer and reason."""

    first_turn: int
    last_turn: int
    turns: int
    value: bool | None
    rationale: str


def check_example(shape: ExampleShape, *, allow_na: bool) -> None:
    """Check the turns, value and rationale of one example.

    Raises
    ------
    FieldProblem : for the first rule that the example breaks.
    """
    if not 1 <= shape.first_turn <= shape.last_turn <= shape.turns:
        turns = f"{shape.first_turn} to {shape.last_turn}"
        raise FieldProblem(
            "turns", f"must be the first and the last of turns 1 to {shape.turns}, not {turns}"
        )
    if shape.last_turn - shape.first_turn >= MOST_TURNS:
        count = shape.last_turn - shape.first_turn + 1
        raise FieldProblem("turns", f"are {count} messages; an excerpt has {MOST_TURNS} at most")
    if shape.value is None and not allow_na:
        raise FieldProblem("value", "must be true or false: the criterion does not allow not applicable")
    if not shape.rationale.strip():
        raise FieldProblem("rationale", "must not be blank: an example says why")
    if len(shape.rationale) > LONGEST_RATIONALE:
        raise FieldProblem("rationale", f"is longer than {LONGEST_RATIONALE:,} characters")


def check_mixture(values: Sequence[bool | None]) -> None:
    """Check the number of examples and the balance of their answers.

    Raises
    ------
    FieldProblem : too many examples, or True and False differ by more than one.

    Examples
    --------
    >>> check_mixture([True, False, None])
    """
    if len(values) > MOST_EXAMPLES:
        raise FieldProblem("examples", f"are {len(values)}; a prompt has {MOST_EXAMPLES} at most")
    true, false = values.count(True), values.count(False)
    if abs(true - false) > 1:
        raise FieldProblem("examples", f"are {true} True and {false} False: half of each, or one more of one")


def advice(values: Sequence[bool | None], *, topics: Sequence[str]) -> tuple[str, ...]:
    """Return advice for better examples; none of it is a rule.

    Parameters
    ----------
    topics : the topic of each example's chat.

    Examples
    --------
    >>> advice([True, False], topics=["tips", "tips"])
    ('examples: all are on one topic; different topics teach the rule rather than the case',)
    """
    true, false, neither = values.count(True), values.count(False), values.count(None)
    notes = []
    if true != false:
        notes.append(f"examples: {true} True and {false} False; as many of each is advised")
    if neither > 1:
        notes.append(f"examples: {neither} not applicable; one is advised at most")
    if len(values) > 1 and len(set(topics)) == 1:
        notes.append("examples: all are on one topic; different topics teach the rule rather than the case")
    return tuple(notes)
