"""Reads citations of a chat's messages, such as `[m7: "exact words"]`, in a model's prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Quotation marks of all languages; APOSTROPHES are also found inside words.
APOSTROPHES = "'‘’‚‛`´′＇❛❜"
QUOTATION_MARKS = f'{APOSTROPHES}"“”„‟″«»‹›「」『』｢｣《》〈〉〝〞〟＂❝❞'

_MARK = rf"\\?[{QUOTATION_MARKS}]"
_WORD = r"[^\W\d_][^\W\d_-]{0,20}"
_ROLE = rf"(?:[\s(,:|–—-]+(?!m\d){_WORD}\)?){{0,3}}"  # as in `m02 bot`
_FIRST = rf"(?:{_WORD}\s+){{0,2}}?(?:m|(?:message|turn)s?\s+)\d{{1,6}}{_ROLE}"
_MESSAGES = rf"{_FIRST}(?:\s*(?:[,;/&+、，–—-]|and)\s*m?\d{{1,6}}{_ROLE}){{0,9}}\s*[:：|]\s*"
# NB: a quote never runs into the next bracket, so a missing mark hides only its own citation.
QUOTED = (
    rf"[*_]{{0,3}}{_MARK}(?:(?!\[\s*m\d).){{1,600}}?{_MARK}[*_]{{0,3}}"
    r"[\s.,;…]*(?:\([^()\[\]\n]{1,30}\)\s*)?[\]］】]"
)
CITATION = re.compile(rf"[\[［【]\s*(?P<messages>{_MESSAGES})(?P<body>{QUOTED})", re.IGNORECASE | re.DOTALL)
_NUMBERS = re.compile(rf"(\d{{1,6}})(?:{_ROLE}\s*[–—-]\s*m?(\d{{1,6}}))?", re.IGNORECASE)
_BETWEEN = r"[*_]{0,3}\s*(?:[,;/&+、，；…]|\.\.\.|\band\b)?\s*"
_NEXT_MESSAGES = re.compile(rf"{_MARK}{_BETWEEN}({_MESSAGES})(?=[*_]{{0,3}}{_MARK})", re.IGNORECASE)
_END = re.compile(rf"{_MARK}[*_]{{0,3}}[\s.,;…]*(?:\([^()]*\)\s*)?[\]］】]?$")
_WIDEST_RANGE = 200


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of one of the named messages."""

    messages: tuple[int, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Citation:
    """The quotes in one bracket; `text[start:end]` is the bracket."""

    start: int
    end: int
    quotes: tuple[Quoted, ...]


def citations(text: str) -> Iterator[Citation]:
    """Yield every citation in a text, in order.

    A role beside a number (`[m02 bot: "…"]`) is no part of the address.

    Examples
    --------
    >>> [(quote.messages, quote.words) for quote in next(citations('[m2, m4–m6: "no", «yes»]')).quotes]
    [((2, 4, 5, 6), 'no'), ((2, 4, 5, 6), 'yes')]
    """
    for match in CITATION.finditer(text):
        # Parts of one bracket: words, messages, words, …
        messages, *parts = match["messages"], *_NEXT_MESSAGES.split(match["body"])
        addressed = zip([messages, *parts[1::2]], parts[::2], strict=True)
        quotes = (Quoted(_numbers(named), words) for named, body in addressed for words in quotes_in(body))
        yield Citation(*match.span(), tuple(quotes))


def quotes_in(body: str) -> tuple[str, ...]:
    """Return the words between the quotation marks of a `QUOTED` part, one item for each quote."""
    inner = _END.sub("", body).lstrip("*_\\")
    mark, words = inner[:1], inner[1:]
    marks = QUOTATION_MARKS if mark in APOSTROPHES else QUOTATION_MARKS.replace(APOSTROPHES, "")
    apart = rf"\\?[{marks}][*_]{{0,3}}\s*(?:[,;/&+、，；…]|\.\.\.|\band\b)\s*[*_]{{0,3}}\\?[{marks}]"
    return tuple(quote.strip() for quote in re.split(apart, words))


def _numbers(messages: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for match in _NUMBERS.finditer(messages):
        first = int(match[1])
        last = int(match[2] or first)
        numbers += range(first, max(first, min(last, first + _WIDEST_RANGE)) + 1)
    return tuple(dict.fromkeys(numbers))
