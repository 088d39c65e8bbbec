"""Reads verdicts: by rule from the end of a rationale, or from the formatter's JSON."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.transcript_fencing import DRAFT_MARK, FENCE_LINE, MESSAGE_MARK, without_invisible
from evaluation.core.types import Criterion, Size
from evaluation.engines.core.roles import ADVOCATES

READER_VERSION = 2
FORMATTER_SCHEMA_VERSION = 1

_HEADER = re.compile(r"[\s#*_`:~\-]*VERDICTS[\s#*_`:~\-]*", re.IGNORECASE)
_LINE = re.compile(r"[\s*_`#+•\-]*(?:\d+[.)][\s*_`]*)?([a-z][a-z0-9_]*)[\s*_`]*:(.*)", re.IGNORECASE)
_MARKS = "|".join((MESSAGE_MARK, DRAFT_MARK, *(role.mark for role in ADVOCATES)))
_MARKED_LINE = re.compile(rf"^[ \t]*(?:{_MARKS})\|")
_CODE_FENCE = re.compile(r"\s*(?:```|~~~)[a-z]*\s*", re.IGNORECASE)
ANSWER_DECORATION = " \t*_`.,;"  # no tilde: a struck-through answer does not count
_LONGEST_LINE = 300
_LONGEST_EXPLANATION = 600

_ANSWERS: Mapping[str, bool | None] = {"true": True, "false": False, "not_applicable": None}


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
class BlockAnswer:
    """One line of a block, its word in lower case; `place` is the code point after the colon."""

    key: str
    word: str
    place: int

    @property
    def value(self) -> bool | None:
        """Return True or False; None for any other word, including not applicable."""
        return _ANSWERS.get(self.word)


@dataclass(frozen=True, slots=True)
class CopiedVerdict:
    """The formatter's entry for one key."""

    value: bool | None
    explanation: str


def read_answer(text: str, *, criteria: Sequence[Criterion]) -> Answer:
    """Read the last VERDICTS block that is the reviewer's own.

    A block does not count inside quotation marks, in quoted (`>`) or marked lines, or before the last fence
    line. Order, letter case and Markdown decoration do not matter; other keys are ignored. A key stays unread
    if it is missing, has two different answers or any other answer, such as a forbidden NOT_APPLICABLE.

    Examples
    --------
    >>> polite = Criterion("polite", "Polite?", "", "simple", True, False, "", ())
    >>> dict(read_answer("Kind words.\\nVERDICTS\\n**polite**: true", criteria=[polite]).values)
    {'polite': True}
    """
    lines = without_invisible(text).split("\n")
    start = _own_header(lines)
    if start is None:
        return Answer(prose="\n".join(lines).strip(), values={}, contradictory=frozenset())
    opens_code = start > 0 and _CODE_FENCE.fullmatch(lines[start - 1])
    prose = "\n".join(lines[: start - 1 if opens_code else start]).strip()
    answers: dict[str, set[str]] = {}
    for answer in _iter_block(lines, start):
        answers.setdefault(answer.key, set()).add(answer.word)
    values: dict[str, bool | None] = {}
    contradictory = set()
    for criterion in criteria:
        words = answers.get(criterion.key.casefold(), set())
        known = {_ANSWERS[word] for word in words if word in _ANSWERS}
        if len(known) > 1:
            contradictory.add(criterion.key)
        elif len(words) == 1 and known and (criterion.allow_na or None not in known):
            values[criterion.key] = known.pop()
    return Answer(prose=prose, values=values, contradictory=frozenset(contradictory))


def block_answers(text: str) -> tuple[BlockAnswer, ...]:
    """Return the lines of the reviewer's own last block, with their place in `text`.

    `text` must come from `without_invisible`; places are code points of it.

    Examples
    --------
    >>> [(answer.key, answer.word, answer.place) for answer in block_answers("VERDICTS\\npolite: TRUE")]
    [('polite', 'true', 16)]
    """
    lines = text.split("\n")
    start = _own_header(lines)
    return () if start is None else tuple(_iter_block(lines, start))


def _own_header(lines: Sequence[str]) -> int | None:
    first = max((i + 1 for i, line in enumerate(lines) if FENCE_LINE.match(line)), default=0)
    header, straight, curly = None, 0, 0
    for i, line in enumerate(lines[first:], first):
        if _is_foreign(line):
            continue
        if _HEADER.fullmatch(line[:_LONGEST_LINE]) and straight % 2 == 0 and curly <= 0:
            header = i
        straight += line.count('"')
        curly += line.count("“") - line.count("”")
    return header


def _is_foreign(line: str) -> bool:
    return line.lstrip().startswith(">") or bool(_MARKED_LINE.match(line))


def _iter_block(lines: Sequence[str], header: int) -> Iterator[BlockAnswer]:
    """Yield the block's answers up to the first line that is not of the form `key: answer`."""
    place = sum(len(line) + 1 for line in lines[: header + 1])
    for line in lines[header + 1 :]:
        if line.strip() and not _CODE_FENCE.fullmatch(line):
            match = _LINE.fullmatch(line.replace("\\_", "_")) if len(line) <= _LONGEST_LINE else None
            if match is None or _is_foreign(line):
                break
            word = match[2].strip(ANSWER_DECORATION).casefold()
            yield BlockAnswer(match[1].strip("_").casefold(), word, place + line.index(":") + 1)
        place += len(line) + 1


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
    """Return what the formatter copied, by key.

    Keys with `unclear`, an unknown value or two entries are missing, and so is everything if the text is not
    such a document.
    """
    try:
        document = json.loads(_bare_json(text), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        return {}
    verdicts = document.get("verdicts") if isinstance(document, dict) else None
    if not isinstance(verdicts, dict):
        return {}
    copied = {}
    for criterion in criteria:
        entry = verdicts.get(criterion.key)
        word = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(word, str) and word in _ANSWERS and (criterion.allow_na or word != "not_applicable"):
            explanation = entry.get("explanation") if isinstance(entry, dict) else ""
            plain = without_invisible(explanation).strip() if isinstance(explanation, str) else ""
            copied[criterion.key] = CopiedVerdict(
                value=_ANSWERS[word], explanation=plain[:_LONGEST_EXPLANATION]
            )
    return copied


def _bare_json(text: str) -> str:
    lines = text.strip().split("\n")
    if len(lines) > 2 and _CODE_FENCE.fullmatch(lines[0]) and _CODE_FENCE.fullmatch(lines[-1]):
        return "\n".join(lines[1:-1])
    return text


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    times = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if times[key] == 1}
