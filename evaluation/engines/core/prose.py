"""Splits a model's prose by criterion."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

BEFORE = ""

_DECORATION = r"[\s#*_`•|+\-\[\"“„«]"
_PREFIX = (
    rf"{_DECORATION}{{0,12}}(?:\(?\d{{1,2}}[.):]{{0,2}}\s{_DECORATION}{{0,12}})?"
    rf"(?:(?P<word>criterion\b)[\s:.\d–—-]{{0,12}}{_DECORATION}{{0,12}})?"
)
_CLOSING = r"(?P<closing>[\s*_`\]\"”“»#]{0,12})"
_IDENTIFIER = r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
_SEPARATOR = r"[:：–—=|(]|-\s"
_ANSWER = re.compile(r"\W*(?:true|false|not[ _]applicable|n/?a)\b[\W_]*", re.IGNORECASE)
_BLOCK = re.compile(r"\W*(?:final\s+)?verdicts?\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Heading:
    """A line that begins a section; `key` is None for a criterion that was not asked."""

    key: str | None
    rest: str

    @property
    def is_answer(self) -> bool:
        """Return whether the line holds nothing but a key and an answer."""
        return bool(_ANSWER.fullmatch(self.rest))


def by_criterion(text: str, *, keys: Sequence[str]) -> dict[str, str]:
    """Return the text under each heading that names a key; text before the first heading is under "".

    A heading is a line that holds only a key, or begins with one and a separator, in any Markdown and
    numbering: `### 1. key`, `**key** – text`, ``## Criterion `key` ``, `key: text`. Text after the key is
    part of the section. A list of answers (`key: TRUE`) is no section. Text under a key that was not asked
    is dropped.

    Examples
    --------
    >>> by_criterion("intro\\n### 1. polite\\nyes\\n**clear** – no", keys=["polite", "clear"])
    {'': 'intro', 'polite': 'yes', 'clear': 'no'}
    """
    return dict(_by_criterion(text, tuple(keys)))


@lru_cache(maxsize=16)  # an answer is split again for each of its keys
def _by_criterion(text: str, keys: tuple[str, ...]) -> Mapping[str, str]:
    lines = text.split("\n")
    headings = [_heading(line, keys) for line in lines]
    sections: dict[str, list[str]] = {}
    current: str | None = BEFORE
    in_block = False
    for place, (line, heading) in enumerate(zip(lines, headings, strict=True)):
        in_block = bool(_BLOCK.fullmatch(line)) or (in_block and not (heading and not heading.rest))
        if heading and not (in_block and heading.rest) and _has_text(heading, place, lines, headings):
            current, line = heading.key, heading.rest
        if current is not None:
            sections.setdefault(current, []).append(line)
    texts = {key: "\n".join(lines).strip() for key, lines in sections.items()}
    return {key: body for key, body in texts.items() if body}


def about(key: str, *, text: str, keys: Sequence[str]) -> str:
    """Return what a text says about one criterion: its section, or everything if it is the only key.

    Without headings and with several keys it is "": no criterion receives another one's text.
    """
    parts = by_criterion(text, keys=keys)
    if len(keys) == 1:
        return "\n\n".join(part for part in (parts.get(BEFORE), parts.get(key)) if part)
    return parts.get(key, "")


def text_on(key: str, *, text: str, keys: Sequence[str]) -> str:
    """Return what a text says about one criterion, else what stands before the sections of the others."""
    return about(key, text=text, keys=keys) or by_criterion(text, keys=keys).get(BEFORE, "")


def join_sections(parts: Mapping[str, str]) -> str:
    """Return sections as one text, each under its key."""
    return "\n\n".join(f"{key}\n{body}" if key else body for key, body in parts.items())


@lru_cache(maxsize=512)  # an answer is split with its block and without it
def _heading(line: str, keys: tuple[str, ...]) -> _Heading | None:
    """Return the heading in a line; text may follow an asked key, or any key of a heading in Markdown."""
    match = _pattern(keys).match(line.replace("\\_", "_"))
    if match is None:
        return None
    opening, closing, rest = match["opening"], match["closing"], match["rest"]
    if rest and not re.match(_SEPARATOR, rest) and "#" not in opening and "*" not in closing:
        return None
    rest = rest.lstrip(" \t*_`:：–—-=|").rstrip(" \t#|")
    if match["other"] and rest and "#" not in opening and not match["word"]:
        return None
    return _Heading(_names(keys).get(_folded(match["key"] or "")), rest)


def _has_text(
    heading: _Heading, place: int, lines: Sequence[str], headings: Sequence[_Heading | None]
) -> bool:
    """Return whether a line is more than one of a list of answers: then prose follows it."""
    if not heading.is_answer:
        return True
    following = (at for at in range(place + 1, len(lines)) if lines[at].strip())
    at = next(following, None)
    return at is not None and headings[at] is None


@lru_cache(maxsize=64)
def _pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    spelt = (re.escape(key).replace("_", r"[_\s-]") for key in sorted(keys, key=len, reverse=True))
    return re.compile(
        rf"(?P<opening>{_PREFIX})(?:(?P<key>{'|'.join(spelt)})|(?P<other>{_IDENTIFIER}))(?!\w){_CLOSING}(?P<rest>.*)",
        re.IGNORECASE,
    )


@lru_cache(maxsize=64)
def _names(keys: tuple[str, ...]) -> dict[str, str]:
    return {_folded(key): key for key in keys}


def _folded(key: str) -> str:
    return re.sub(r"[_\s-]", "_", key.casefold())
