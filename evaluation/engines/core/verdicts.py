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
ANSWER_DECORATION = " \t*_`.,;"  # no tilde: an answer that is struck through is none
_LONGEST_LINE = 300
_LONGEST_EXPLANATION = 600

_ANSWERS: Mapping[str, bool | None] = {"true": True, "false": False, "not_applicable": None}


@dataclass(frozen=True, slots=True)
class Answer:
    """A reasoning answer as the rules read it.

    `values` holds the keys that were read (None = not applicable), `contradictory` those with two verdicts
    in the block; `prose` is what stands before the block.
    """

    prose: str
    values: Mapping[str, bool | None]
    contradictory: frozenset[str]


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """An answer in a block, its word in lower case; `place` is the code point behind the line's colon."""

    key: str
    word: str
    place: int

    @property
    def value(self) -> bool | None:
        """True or False; None for any other word, not applicable among them."""
        return _ANSWERS.get(self.word)


@dataclass(frozen=True, slots=True)
class CopiedVerdict:
    """What the formatter copied for one key."""

    value: bool | None
    explanation: str


def read_answer(text: str, *, criteria: Sequence[Criterion]) -> Answer:
    """Read the last VERDICTS block of `text` that is the reviewer's own.

    A block does not count inside quotation marks, in quoted (`>`) or marked lines, or before the last fence
    line. In the block any order, letter case and Markdown decoration will do and other keys are ignored. A
    key is left unread if it is missing, has two different answers or any other answer (NOT_APPLICABLE where
    it is not allowed).

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
    """Return what the reviewer's own last block answers, line by line, with where in `text` it does.

    `text` must have passed `without_invisible`, so that places are places of it.

    >>> [(given.key, given.word, given.place) for given in given_answers("VERDICTS\\npolite: TRUE")]
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
    """Return the strict JSON schema of the formatter's answer for these keys.

    The explanation comes first, so that the sentence is copied before the value is chosen. Compact size
    bounds it, as a very small model would fill its whole room; hosted endpoints need not know `maxLength`.
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

    `unclear`, unknown values, keys given twice and anything that is not such a document are left out.
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
