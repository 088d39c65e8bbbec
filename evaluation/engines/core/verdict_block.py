"""Finds the reviewer's own VERDICTS block at the end of an answer, and reads its lines."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evaluation.core.transcript_fencing import DRAFT_MARK, FENCE_LINE, MESSAGE_MARK
from evaluation.engines.core.roles import ADVOCATES

_LONGEST_LINE = 300
_HEADER = re.compile(
    r"[\s#*_`=~•–—-]*(?:(?:final|overall|my)[ _])?verdict(?:s|\(s\))?[\s*_`=~#–—-]*(?:[:：](?P<answers>.*))?",
    re.IGNORECASE,
)
# What may stand before a key: a bullet, a number, a box, the word "criterion".
_BEFORE = (
    r"[\s*_`#+•\"'‘“(\[-]*(?:[ x]\]\s*)?(?:\d+[.):]?[\s*_`]*)?"
    r"(?:criterion(?:\s+key)?(?:\s*\d+)?\s*[:.–—-]?[\s*`]+)?"
)
_KEY = r"(?P<key>[a-z](?:\\?_|[a-z0-9 -])*)[\s*_`\"'’”\])]*"
_WORD = r"(?P<word>true|false|not[ _-]?applicable|n\s?/\s?a|n\.a\.|na)(?![\w/])"
_ENTRY = re.compile(rf"{_BEFORE}{_KEY}(?:[:：=→⇒–—]|[-=]>|\s-(?=\s))(?P<answer>.*)", re.IGNORECASE)
_PIECE = re.compile(rf"[\s,;/|·*`&{{\"]*(?:and\s+)?{_KEY}[:：=→][\s*_`\"]*{_WORD}[\s*_`.\"]*", re.IGNORECASE)
_ANSWER = re.compile(
    rf"[\s*_`:\"'‘“„«(\[]*{_WORD}[\s*_`\"'’”“»)\].]*(?P<rest>[(\[{{,;:–—-].*|(?:because|since|as)\b.*)?",
    re.IGNORECASE,
)
_ANY_WORD = re.compile(r"\b(?:true|false|not[ _-]?applicable|n/a)\b", re.IGNORECASE)
# A remark behind an answer that takes it back.
_DOUBT = re.compile(
    r"\?|^no$|^not(?: (?:really|quite|sure|certain|exactly|so|at all|fully))?$|"
    r"\b(?:actually|although|but|changed?|correct(?:ion|ed)|however|if|instead|maybe|or|perhaps|probably|"
    r"rather|think|unclear|uncertain|unless|unsure|vs|wait|would)\b",
    re.IGNORECASE,
)
_SYMBOL = re.compile("[\u2190-\u2191\u2600-\u27bf\u2b00-\u2bff\ufe0e\ufe0f\U0001f000-\U0001faff]")
_NOTE = re.compile(
    r"[\s*_`#•(\[-]*(?:notes?|n\.?b\.?|confidence|knowledge|evidence|reason(?:ing)?|rationale|why)[\s*_`]*[:：]",
    re.IGNORECASE,
)
# Words that begin a remark on the block, with a colon, and are no key.
_REMARKS = frozenset({"correction", "update", "edit", "revised", "overall", "final", "so", "but", "instead"})
_CODE_FENCE = re.compile(r"\s*(?:```|~~~)[a-z]*\s*", re.IGNORECASE)
# Blank, a rule, a brace of JSON, the line below a table's head, a tag.
_EMPTY = re.compile(r"[\s{}*_=~|:-]*|\s*</?[a-z]+ ?/?>\s*", re.IGNORECASE)
_TABLE_HEADS = frozenset({"criterion", "criteria", "key"})
_MARKS = "|".join((MESSAGE_MARK, DRAFT_MARK, *(role.mark for role in ADVOCATES)))
_FOREIGN = re.compile(rf"\s*>.*|[ \t]*(?:{_MARKS})\|.*")
_QUOTE_MARKS = frozenset('"“”„‟«»‹›「」『』《》〈〉〝〞〟＂')
_SINGLE_OPENS, _SINGLE_ENDS = re.compile(r"(?:^|[\s(\[:])['‘‚]\w"), re.compile(r"['’‘][\s\])}.,;]*$")
_NO_KEY = " \t*_`#.0123456789"  # what the first column of a table may hold besides a key
# The words for "not applicable" differ; all other answers are their own word.
_NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """One answer of a block.

    Attributes
    ----------
    key : in lower case, with underscores; "" for an answer behind the heading, without a key.
    word : `true`, `false` or `not_applicable`; any other text is no answer.
    place : the code point behind the separator.
    """

    key: str
    word: str
    place: int


@dataclass(frozen=True, slots=True)
class Block:
    """The answers of a block, the number of its heading's line, and whether it is in a code fence."""

    start: int
    answers: tuple[BlockAnswer, ...]
    in_code: bool


def own_block(text: str, *, keys: Collection[str] = ()) -> Block | None:
    """Return the reviewer's own block: the last one, if nothing but notes follows it.

    A block does not count within quotation marks, in quoted (`>`) or marked lines, or before the last fence
    line. A quotation mark without a partner hides a block only within its own paragraph.

    Parameters
    ----------
    text : from `without_invisible`; places are code points of it.
    keys : of the criteria asked, in lower case.

    Examples
    --------
    >>> [(one.key, one.word) for one in own_block("VERDICTS\\npolite = TRUE (m3)\\nNOTE: short chat").answers]
    [('polite', 'true')]
    >>> own_block("VERDICTS\\npolite: TRUE\\nOn second thoughts it was not.") is None
    True
    """
    lines = text.split("\n")
    headers = _headers(lines)
    block = _block(lines, headers[-1], keys=keys) if headers else None
    if block is None or not block.in_code:
        return block
    # A block in code could be one that somebody sent: it may not overrule one that stands open.
    words = {answer.key: answer.word for answer in block.answers}
    earlier = [answer for start in headers[:-1] for answer in _begun(lines, start, keys=keys)[0]]
    return None if any(words.get(one.key, one.word) != one.word for one in earlier) else block


def prose_before(text: str) -> str:
    """Return what stands before the last block, whether or not more text follows the block.

    >>> prose_before("Kind words.\\n\\nVERDICTS\\npolite: TRUE\\nThat is all.")
    'Kind words.'
    """
    lines = text.split("\n")
    last = next((start for start in reversed(_headers(lines)) if _begun(lines, start)[0]), None)
    if last is None:
        return text.strip()
    start = last - _opens_code(lines, last)
    return "\n".join(lines[:start]).strip()


def _headers(lines: Sequence[str]) -> tuple[int, ...]:
    """Return the lines that can begin a block, outside quotations."""
    return _headers_in(tuple(lines))


@lru_cache(maxsize=8)  # an answer is read for its block and for the prose before it
def _headers_in(lines: tuple[str, ...]) -> tuple[int, ...]:
    first = max((i + 1 for i, line in enumerate(lines) if FENCE_LINE.match(line)), default=0)
    headers, paragraph = [], ""
    for i, line in enumerate(lines[first:], first):
        if _is_header(line) and not _open_quote(paragraph):
            headers.append(i)
        paragraph = f"{paragraph}\n{line}" if line.strip() else ""
    return tuple(headers)


def _is_header(line: str) -> bool:
    match = _HEADER.fullmatch(line) if len(line) <= _LONGEST_LINE else None
    rest = (match["answers"] or "").strip(" \t*_`") if match else ""
    return match is not None and (not rest or bool(_answers(rest, 0, ()) or _word(rest)))


def _block(lines: Sequence[str], start: int, *, keys: Collection[str]) -> Block | None:
    answers, end = _begun(lines, start, keys=keys)
    if not answers or end < len(lines):
        return None
    return Block(
        start, tuple(answers), in_code=any(_CODE_FENCE.fullmatch(line) for line in lines[start + 1 :])
    )


def _opens_code(lines: Sequence[str], start: int) -> bool:
    """Return whether the line above opens a code fence."""
    fences = [i for i in range(start) if _CODE_FENCE.fullmatch(lines[i])]
    return len(fences) % 2 == 1 and fences[-1] == start - 1


def _begun(lines: Sequence[str], start: int, *, keys: Collection[str] = ()) -> tuple[list[BlockAnswer], int]:
    """Return the answers below a heading, and the number of the first line that belongs to no block."""
    place = sum(len(line) + 1 for line in lines[:start])
    answers = _beside_heading(lines[start], place)
    for i, line in enumerate(lines[start + 1 :], start + 1):
        place += len(lines[i - 1]) + 1
        found = _line(line, place, keys)
        if found is None:
            return answers, i
        answers += found
    return answers, len(lines)


def _beside_heading(line: str, place: int) -> list[BlockAnswer]:
    """Return the answers on the heading's own line; one without a key is of the only criterion."""
    match = _HEADER.fullmatch(line)
    if match is None or not (rest := match["answers"]):
        return []
    place += match.start("answers")
    if word := _word(rest):
        return [BlockAnswer("", word, place)]
    return _answers(rest, place, ()) or []


def _line(line: str, place: int, keys: Collection[str]) -> list[BlockAnswer] | None:
    """Return the answers of a line; [] for a note or a line without text, None for any other text."""
    if _EMPTY.fullmatch(line) or _CODE_FENCE.fullmatch(line):
        return []
    if _FOREIGN.fullmatch(line) or _open_quote(line):
        return None
    if _SINGLE_ENDS.search(line) and not _SINGLE_OPENS.search(line):
        return None
    if _NOTE.match(line):
        return None if _ANY_WORD.search(line) else []
    if len(line) > _LONGEST_LINE:
        return None
    if line.lstrip().startswith("|"):
        return _row(line, place)
    return _answers(line, place, keys)


def _answers(line: str, place: int, keys: Collection[str]) -> list[BlockAnswer] | None:
    """Return the answers of a line that begins with a key; None if it does not, or takes one back."""
    match = _ENTRY.fullmatch(line)
    if match is None:
        return None
    key, answer = _key(match["key"]), match["answer"]
    if key in _REMARKS and key not in keys:
        return None
    if word := _word(answer):
        return [BlockAnswer(key, word, place + match.start("answer"))]
    if pieces := _pieces(line, place):
        return pieces
    if any(other in answer.casefold() for other in keys if other != key):
        return None
    # Any other answer leaves its own key unread; behind another word it may be about all of them.
    if key in keys or ("_" in key and not _ANY_WORD.search(answer)):
        return [BlockAnswer(key, answer.strip(" \t*_`.,;").casefold(), place + match.start("answer"))]
    return None


def _pieces(line: str, place: int) -> list[BlockAnswer]:
    """Return the answers of a line that holds several, and nothing else."""
    pieces, at = [], 0
    line = line.rstrip(" \t}")
    while at < len(line):
        match = _PIECE.match(line, at)
        if match is None or match.end() == at:
            return []
        pieces.append(BlockAnswer(_key(match["key"]), _named(match["word"]), place + match.start("word")))
        at = match.end()
    return pieces


def _row(line: str, place: int) -> list[BlockAnswer] | None:
    """Return the answer of a table's row: a key, its answer, and perhaps remarks."""
    cells = re.finditer(r"[^|]+", line)
    filled = [(cell[0].strip(" \t*_`"), cell.start()) for cell in cells if cell[0].strip(_NO_KEY)]
    if len(filled) < 2:
        return None
    (key, _), (answer, start), *remarks = filled
    if word := _word(answer):
        doubted = any(_ANY_WORD.search(remark) for remark, _ in remarks)
        return None if doubted else [BlockAnswer(_key(key), word, place + start)]
    return [] if _TABLE_HEADS & {cell.casefold() for cell, _ in filled} else None


def _word(answer: str) -> str:
    """Return an answer's word, in one spelling; "" for any other text, or a word that its remark doubts.

    >>> [_word(text) for text in ("**TRUE**", "N/A (no order)", "FALSE ✅", "TRUE, or so", "~~TRUE~~")]
    ['true', 'not_applicable', 'false', '', '']
    """
    match = _ANSWER.fullmatch(_SYMBOL.sub("", answer).rstrip())
    if match is None:
        return ""
    rest = (match["rest"] or "").strip(" ()[]{},;:–—-")
    return "" if _ANY_WORD.search(rest) or _DOUBT.search(rest) else _named(match["word"])


def _named(word: str) -> str:
    word = word.casefold()
    return word if word in ("true", "false") else _NOT_APPLICABLE


def _key(text: str) -> str:
    return re.sub(r"\\?_|[\s-]+", "_", text).strip("_").casefold()


def _open_quote(text: str) -> bool:
    """Return whether a quotation mark has no partner; a mark behind a digit can mean inches.

    >>> [_open_quote(text) for text in ('He wrote „end', 'a 15" screen', '"a 15"', "»so«")]
    [True, False, False, False]
    """
    is_open = False
    for i, mark in enumerate(text):
        if mark in _QUOTE_MARKS and (is_open or mark != '"' or not text[max(0, i - 1) : i].isdigit()):
            is_open = not is_open
    return is_open
