"""The mapping file: what in another tool's export is the chat, the rater and each criterion's answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.jsonl import NAME_LIMIT, Fields, read_document
from common.problems import FieldProblem, shown

Choice = str | int | float | bool
ANSWERS: Mapping[str, bool | None] = {"true": True, "false": False, "not_applicable": None}
NO_ANSWER = "no_answer"
LISTED = 50  # unknown choices in one message
DIFFERENT = 1000  # unknown choices on all questions; beyond, one of them is a text
_MAPPING_FIELDS = frozenset(("chat_id", "criteria", "raters"))
_CRITERION_FIELDS = frozenset(("question", "comment", NO_ANSWER, *ANSWERS))


@dataclass(frozen=True, slots=True)
class CriterionMap:
    """A criterion: the tool's question, the one whose text is the comment, and what each choice means."""

    key: str
    question: str
    comment: str
    # Choice → True, False or None (not applicable); those that are no answer at all stand in `no_answer`.
    meaning: Mapping[Choice, bool | None]
    no_answer: frozenset[Choice]


@dataclass(frozen=True, slots=True)
class ForeignMap:
    """A mapping file as read; `chat_id` is a path such as "metadata.chat_id", "" = not said."""

    chat_id: str
    criteria: Sequence[CriterionMap]
    raters: Mapping[str, str]


class UnknownChoices:
    """Counts the choices that the mapping says nothing of, to be refused all at once."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, criterion: CriterionMap, choice: Any) -> None:
        """Count one; raises FieldProblem on so many that the question is none of choices."""
        self.counts[criterion.key, shown(choice)] += 1
        if len(self.counts) > DIFFERENT:
            raise FieldProblem(
                criterion.question,
                f"more than {DIFFERENT:,} choices that the mapping does not name: is it a free text?",
            )

    def refusal(self) -> str:
        """All of them in one line, "" when there are none."""
        found = sorted(self.counts.items())
        words = [f"{key}: {choice} ({times:,}×)" for (key, choice), times in found[:LISTED]]
        more = f", and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
        return f"choices that the mapping does not name: {', '.join(words)}{more}" if found else ""


def read_mapping(path: Path) -> ForeignMap:
    """
    The mapping of a JSON file.

    Raises ImportProblem with file, line and field.
    """
    return read_document(path, mapping_of)


def mapping_of(fields: Fields) -> ForeignMap:
    """
    Validate a mapping; an unknown field is refused: it may be a misspelt one.

    Raises FieldProblem.

    Examples
    --------
    >>> data = {"criteria": {"polite": {"question": "tone", "true": ["kind"], "false": ["rude"]}}}
    >>> mapping_of(Fields(data)).criteria[0].meaning
    {'kind': True, 'rude': False}
    """
    _known(fields, _MAPPING_FIELDS)
    criteria = [
        _criterion(key, Fields(data, f"criteria.{key}")) for key, data in fields.mapping("criteria").items()
    ]
    if not criteria:
        raise fields.refuse("criteria", "names no criterion")
    raters = Fields(fields.mapping("raters"), "raters") if fields.given("raters") else Fields({})
    return ForeignMap(
        chat_id=fields.text("chat_id", blank=False) if fields.given("chat_id") else "",
        criteria=criteria,
        raters={name: raters.text(name, limit=NAME_LIMIT, blank=False) for name in raters.data},
    )


def answers_in(criterion: CriterionMap, choices: Sequence[Any], unknown: UnknownChoices) -> set[bool | None]:
    """
    What the choices on a question amount to: one of True, False and None = not applicable, or nothing.

    Raises FieldProblem where they contradict each other.

    Examples
    --------
    >>> polite = CriterionMap("polite", "tone", "", {"kind": True, "rude": False}, frozenset())
    >>> answers_in(polite, ["rude"], UnknownChoices())
    {False}
    """
    found: set[bool | None] = set()
    for choice in choices:
        plain = _plain(choice)
        if plain in criterion.meaning:
            found.add(criterion.meaning[plain])
        elif plain not in criterion.no_answer:
            unknown.add(criterion, choice)
    if len(found) > 1:
        raise FieldProblem(
            criterion.question, f"{shown(list(choices))} says more than one answer on {criterion.key}"
        )
    return found


def at_path(data: Mapping[str, Any], path: str) -> Any:
    """
    The value at a dotted path, None where there is none; a key that holds the dots itself comes first.

    Examples
    --------
    >>> at_path({"data": {"chat": "c1"}}, "data.chat"), at_path({"a.b": 1}, "a.b"), at_path({}, "a.b")
    ('c1', 1, None)
    """
    if path in data:
        return data[path]
    head, _, rest = path.partition(".")
    inner = data.get(head)
    return at_path(inner, rest) if rest and isinstance(inner, dict) else None


def _criterion(key: str, fields: Fields) -> CriterionMap:
    _known(fields, _CRITERION_FIELDS)
    meaning: dict[Choice, bool | None] = {}
    for name, value in ANSWERS.items():
        for choice in _choices(fields, name):
            if choice in meaning:
                raise fields.refuse(name, f"{shown(choice)} stands under two answers")
            meaning[choice] = value
    if not meaning:
        raise fields.refuse("true", "no choice is named under true, false or not_applicable")
    no_answer = frozenset(_choices(fields, NO_ANSWER))
    if both := no_answer & meaning.keys():
        raise fields.refuse(NO_ANSWER, f"{shown(next(iter(both)))} stands under an answer too")
    comment = fields.text("comment", blank=False) if fields.given("comment") else ""
    return CriterionMap(key, fields.text("question", blank=False), comment, meaning, no_answer)


def _choices(fields: Fields, name: str) -> list[Choice]:
    choices = fields.items(name, default=[])
    for choice in choices:
        if not isinstance(choice, str | int | float):
            raise fields.refuse(
                name, f"must be a list of texts, numbers, true and false, not {shown(choice)}"
            )
    return [_plain(choice) for choice in choices]


def _plain(choice: Any) -> Any:
    """A choice that can be looked up; NB: to Python True is 1, to the exporting tool it is not."""
    if isinstance(choice, bool):
        return "true" if choice else "false"
    return choice if isinstance(choice, str | int | float) else repr(choice)


def _known(fields: Fields, names: frozenset[str]) -> None:
    for name in sorted(fields.unknown(names)):
        raise fields.refuse(name, f"no such field; there are {', '.join(sorted(names))}")
