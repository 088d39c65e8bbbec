"""The mapping file: chat id, raters and answers in another tool's export."""

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
DIFFERENT = 1000  # unknown choices on all questions; with more, a question is probably free text
_MAPPING_FIELDS = frozenset(("chat_id", "criteria", "rater", "raters"))
_CRITERION_FIELDS = frozenset(("question", "comment", NO_ANSWER, *ANSWERS))


@dataclass(frozen=True, slots=True)
class CriterionMap:
    """A criterion: the tool's question, the question with the comment, and the meaning of each choice."""

    key: str
    question: str
    comment: str
    # Choice → True, False or None (not applicable); choices without an answer are in `no_answer`.
    meaning: Mapping[Choice, bool | None]
    no_answer: frozenset[Choice]


@dataclass(frozen=True, slots=True)
class ImportMapping:
    """
    A mapping file; `chat_id` is a path such as "metadata.chat_id", "" = default.

    `rater` is the question whose text names the rater, before the tool's own account.
    """

    chat_id: str
    criteria: Sequence[CriterionMap]
    raters: Mapping[str, str]
    rater: str = ""


class UnknownChoices:
    """Counts choices that the mapping does not name, to report them together."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, criterion: CriterionMap, choice: Any) -> None:
        """Count one choice; raise FieldProblem on too many, which suggest a free text."""
        self.counts[criterion.key, shown(choice)] += 1
        if len(self.counts) > DIFFERENT:
            raise FieldProblem(
                criterion.question,
                f"more than {DIFFERENT:,} choices that the mapping does not name: is it a free text?",
            )

    def refusal(self) -> str:
        """Return one line with all unknown choices, "" without any."""
        unknown = sorted(self.counts.items())
        words = [f"{key}: {choice} ({times:,}×)" for (key, choice), times in unknown[:LISTED]]
        more = f", and {len(unknown) - LISTED:,} more" if len(unknown) > LISTED else ""
        return f"choices that the mapping does not name: {', '.join(words)}{more}" if unknown else ""


def read_mapping(path: Path) -> ImportMapping:
    """
    Read the mapping from a JSON file.

    Raises ImportProblem with file, line and field.
    """
    return read_document(path, mapping_of)


def mapping_of(fields: Fields) -> ImportMapping:
    """
    Validate a mapping; unknown fields raise an error, as they may be misspelt.

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
    return ImportMapping(
        chat_id=fields.text("chat_id", blank=False) if fields.given("chat_id") else "",
        criteria=criteria,
        raters={name: raters.text(name, limit=NAME_LIMIT, blank=False) for name in raters.data},
        rater=fields.text("rater", blank=False) if fields.given("rater") else "",
    )


def answers_in(criterion: CriterionMap, choices: Sequence[Any], unknown: UnknownChoices) -> set[bool | None]:
    """
    Return the answer of the choices on a question: {True}, {False}, {None} (not applicable) or set().

    Raises FieldProblem where the choices contradict each other.

    Examples
    --------
    >>> polite = CriterionMap("polite", "tone", "", {"kind": True, "rude": False}, frozenset())
    >>> answers_in(polite, ["rude"], UnknownChoices())
    {False}
    """
    answers: set[bool | None] = set()
    for choice in choices:
        plain = _plain(choice)
        if plain in criterion.meaning:
            answers.add(criterion.meaning[plain])
        elif plain not in criterion.no_answer:
            unknown.add(criterion, choice)
    if len(answers) > 1:
        raise FieldProblem(
            criterion.question, f"{shown(list(choices))} has more than one answer on {criterion.key}"
        )
    return answers


def at_path(data: Mapping[str, Any], path: str) -> Any:
    """
    Return the value at a dotted path, else None; a key that contains the dots takes precedence.

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
                raise fields.refuse(name, f"{shown(choice)} appears under two answers")
            meaning[choice] = value
    if not meaning:
        raise fields.refuse("true", "no choices under true, false or not_applicable")
    no_answer = frozenset(_choices(fields, NO_ANSWER))
    if both := no_answer & meaning.keys():
        raise fields.refuse(NO_ANSWER, f"{shown(next(iter(both)))} appears under an answer, too")
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
    """Return a choice as a lookup key; NB: in Python True equals 1, in the exporting tool it does not."""
    if isinstance(choice, bool):
        return "true" if choice else "false"
    return choice if isinstance(choice, str | int | float) else repr(choice)


def _known(fields: Fields, names: frozenset[str]) -> None:
    for name in sorted(fields.unknown(names)):
        raise fields.refuse(name, f"no such field; known fields are {', '.join(sorted(names))}")
