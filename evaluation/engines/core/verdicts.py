"""Reads verdicts: by rule from the end of a rationale, or from the formatter's JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.transcript_fencing import without_invisible
from evaluation.core.types import Criterion, Size
from evaluation.engines.core.verdict_block import own_block, prose_before

READER_VERSION = 3
FORMATTER_SCHEMA_VERSION = 1

_LONGEST_EXPLANATION = 600
_MOST_OBJECTS = 100  # that are looked at in a formatter's answer

_ANSWERS: Mapping[str, bool | None] = {"true": True, "false": False, "not_applicable": None}
_FORMATTED = {**{word: word for word in _ANSWERS}, "n/a": "not_applicable"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A reasoning answer as the rules read it.

    Attributes
    ----------
    prose : the text before the block.
    values : what was read, by key; None is not applicable.
    contradictory : keys with two verdicts in the block.
    """

    prose: str
    values: Mapping[str, bool | None]
    contradictory: frozenset[str]


@dataclass(frozen=True, slots=True)
class CopiedVerdict:
    """The formatter's entry for one key."""

    value: bool | None
    explanation: str


def read_answer(text: str, *, criteria: Sequence[Criterion]) -> Answer:
    """Read the last VERDICTS block that is the reviewer's own.

    See `own_block` for the blocks that count. Order, letter case and Markdown do not matter; other keys are
    ignored. A key stays unread if it is missing, has two different answers or any other answer, such as a
    forbidden NOT_APPLICABLE.

    Examples
    --------
    >>> polite = Criterion("polite", "Polite?", "", "simple", True, False, "", ())
    >>> dict(read_answer("Kind words.\\nVERDICTS\\n**polite**: true", criteria=[polite]).values)
    {'polite': True}
    """
    plain = without_invisible(text)
    prose, block = prose_before(plain), own_block(plain, keys=[one.key.casefold() for one in criteria])
    words: dict[str, set[str]] = {}
    for answer in block.answers if block else ():
        words.setdefault(answer.key, set()).add(answer.word)
    if len(criteria) == 1 and "" in words:  # an answer behind the heading
        words.setdefault(criteria[0].key.casefold(), set()).update(words[""])
    values: dict[str, bool | None] = {}
    contradictory = set()
    for criterion in criteria:
        given = words.get(criterion.key.casefold(), set())
        known = {_ANSWERS[word] for word in given if word in _ANSWERS}
        if len(known) > 1:
            contradictory.add(criterion.key)
        elif len(given) == 1 and known and (criterion.allow_na or None not in known):
            values[criterion.key] = known.pop()
    return Answer(prose=prose, values=values, contradictory=frozenset(contradictory))


def read_prose(text: str) -> str:
    """Return an answer without its last VERDICTS block.

    >>> read_prose("Kind words.\\nVERDICTS\\npolite: TRUE")
    'Kind words.'
    """
    return prose_before(without_invisible(text))


def formatter_schema(criteria: Sequence[Criterion], *, size: Size) -> dict[str, Any]:
    """Return the strict JSON Schema of the formatter's answer for these keys.

    The explanation comes first: the model copies the sentence before it chooses the value. The compact size
    limits it, because a very small model would fill its whole token limit. Hosted endpoints may not know
    `maxLength`.
    """
    explanation = {"type": "string"} | ({"maxLength": 120} if size == "compact" else {})
    verdicts = {}
    for criterion in criteria:
        words = ["true", "false", *(["not_applicable"] if criterion.allow_na else []), "unclear"]
        verdicts[criterion.key] = _object(
            {"explanation": explanation, "value": {"type": "string", "enum": words}}
        )
    return _object({"verdicts": _object(verdicts)})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_formatter(text: str, *, criteria: Sequence[Criterion]) -> dict[str, CopiedVerdict]:
    """Return what the formatter copied, by key, from the last JSON object of its answer.

    The object has the verdicts under `verdicts` or is these itself. A verdict is an object with `value` and
    `explanation`, or the value alone; a value is a word in any case, true or false. Keys with `unclear`, an
    unknown value or two entries are missing.

    Examples
    --------
    >>> polite = Criterion("polite", "Polite?", "", "simple", True, False, "", ())
    >>> read_formatter('Here you are: {"polite": "TRUE"}', criteria=[polite])["polite"].value
    True
    """
    document = _last_object(text, keys={criterion.key for criterion in criteria})
    verdicts = document.get("verdicts", document)
    if not isinstance(verdicts, dict):
        return {}
    copied = {}
    for criterion in criteria:
        entry = verdicts.get(criterion.key)
        fields = entry if isinstance(entry, dict) else {"value": entry}
        word = _FORMATTED.get(str(fields.get("value")).strip().casefold().replace(" ", "_"))
        if word is None or (word == "not_applicable" and not criterion.allow_na):
            continue
        explanation = fields.get("explanation")
        plain = without_invisible(explanation).strip() if isinstance(explanation, str) else ""
        copied[criterion.key] = CopiedVerdict(_ANSWERS[word], plain[:_LONGEST_EXPLANATION])
    return copied


def _last_object(text: str, *, keys: set[str]) -> dict[str, Any]:
    """Return the last JSON object with `verdicts` or one of the keys, with or without text around it."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_duplicates)
    found: dict[str, Any] = {}
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found = document if keys & document.keys() or "verdicts" in document else found
        at = text.find("{", end)
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    times = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if times[key] == 1}
