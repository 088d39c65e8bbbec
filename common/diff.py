"""Differences between two texts, word by word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Kind = Literal["same", "removed", "added"]

MOST_WORDS = 2_000  # of a changed passage; a longer one is shown as one replacement
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Part:
    """A passage of either text."""

    kind: Kind
    text: str


def word_diff(old: str, new: str) -> tuple[Part, ...]:
    """
    Split two texts into shared, removed and added passages, in order; removed before added.

    The passages without the added ones give `old`, without the removed ones `new`.

    Examples
    --------
    >>> [(part.kind, part.text) for part in word_diff("Was it polite?", "Was it always polite?")]
    [('same', 'Was it '), ('added', 'always '), ('same', 'polite?')]
    """
    lines = _compare(_LINES.findall(old), _LINES.findall(new))
    parts = (part for removed, added, same in lines for part in _refined(removed, added, same))
    joined = groupby((part for part in parts if part.text), key=lambda part: part.kind)
    return tuple(Part(kind, "".join(part.text for part in same)) for kind, same in joined)


def _compare(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield passages as (removed, added, shared); either the first two or the last is filled."""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield "", "", "".join(old[i1:i2])
        else:
            yield "".join(old[i1:i2]), "".join(new[j1:j2]), ""


def _refined(removed: str, added: str, same: str) -> Iterator[Part]:
    """Compare a changed passage word by word, unless it is too long."""
    old, new = _WORDS.findall(removed), _WORDS.findall(added)
    if same or not (old and new) or max(len(old), len(new)) > MOST_WORDS:
        changes = [(removed, added, same)]
    else:
        changes = list(_compare(old, new))
    for old_text, new_text, shared in changes:
        yield Part("same", shared)
        yield Part("removed", old_text)
        yield Part("added", new_text)
