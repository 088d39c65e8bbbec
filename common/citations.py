"""Reads citations of a chat's messages, such as `[m7: "exact words"]`, in a model's prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Quotation marks of all languages; APOSTROPHES are also found inside words.
APOSTROPHES = "'‘’‚‛`´′＇❛❜"
QUOTATION_MARKS = f'{APOSTROPHES}"“”„‟″«»‹›「」『』｢｣《》〈〉〝〞〟＂❝❞'

_MARKS = f"[{QUOTATION_MARKS}]"
_RANGE = r"\s*[–—-]\s*"
_ROLE = r"(?:[\s(]+(?!m\d)[^\W\d_][\w-]{0,20}\)?){0,3}"  # as in `m02 bot`
_MESSAGE = rf"m\d{{1,6}}{_ROLE}"
_MESSAGES = rf"{_MESSAGE}(?:(?:\s*(?:[,;/&+、，]|and)\s*|{_RANGE}){_MESSAGE}){{0,9}}"
# NB: a quote never runs into the next citation, so a missing mark hides only its own.
QUOTED = rf"[*_]{{0,3}}{_MARKS}(?:(?!\[\s*m\d).){{1,600}}?{_MARKS}[*_]{{0,3}}[\s.,;…]*[\]］】]"
CITATION = re.compile(
    rf"[\[［【]\s*(?P<messages>{_MESSAGES})\s*[:：|]\s*(?P<body>{QUOTED})", re.IGNORECASE | re.DOTALL
)
_NUMBERS = re.compile(rf"m(\d{{1,6}}){_ROLE}(?:{_RANGE}m(\d{{1,6}}))?", re.IGNORECASE)
_BETWEEN = r"[*_]{0,3}\s*(?:[,;/&+、，；…]|\.\.\.|\band\b)\s*[*_]{0,3}"
_WIDEST_RANGE = 200


@dataclass(frozen=True, slots=True)
class Citation:
    """Quotes of one or several messages; `text[start:end]` is the whole bracket."""

    start: int
    end: int
    messages: tuple[int, ...]
    quotes: tuple[str, ...]


def citations(text: str) -> Iterator[Citation]:
    """Yield every citation in a text, in order.

    A role after a number (`[m02 bot: "…"]`) is no part of the address.

    Examples
    --------
    >>> [(found.messages, found.quotes) for found in citations('[m2, m4–m6: "not yet", «never»]')]
    [((2, 4, 5, 6), ('not yet', 'never'))]
    """
    for match in CITATION.finditer(text):
        yield Citation(*match.span(), _numbers(match["messages"]), quotes_in(match["body"]))


def quotes_in(body: str) -> tuple[str, ...]:
    """Return the words between the quotation marks of a `QUOTED` part, one item for each quote."""
    inner = body.rstrip(" \t\n.,;…]］】").strip("*_ ")[:-1].lstrip("*_ ")
    mark, words = inner[0], inner[1:]
    marks = QUOTATION_MARKS if mark in APOSTROPHES else QUOTATION_MARKS.replace(APOSTROPHES, "")
    quotes = re.split(rf"[{marks}]{_BETWEEN}[{marks}]", words)
    return tuple(quote.strip() for quote in quotes)


def _numbers(messages: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for match in _NUMBERS.finditer(messages):
        first = int(match[1])
        last = int(match[2] or first)
        numbers += range(first, max(first, min(last, first + _WIDEST_RANGE)) + 1)
    return tuple(dict.fromkeys(numbers))
