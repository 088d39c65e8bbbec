"""Which versions of a criterion's text mean the same, so that their labels count together."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# A change as its author describes it: "" if the author was not asked.
Change = Literal["", "wording", "new"]


@dataclass(frozen=True, slots=True)
class TextMeaning:
    """A version: its number, the hash of what raters and judge are asked, all its texts, its meaning."""

    number: int
    content_hash: str
    texts: tuple[str, ...]
    meaning: str


def next_meaning(
    *, content_hash: str, texts: tuple[str, ...], earlier: Sequence[TextMeaning], change: Change
) -> str:
    """
    Return the meaning of a new version; `earlier` are the criterion's versions, oldest first.

    A confirmed change of wording keeps the meaning. Otherwise restored texts have the meaning that they had,
    another question or definition is a new one, and other words for raters are one if the author says so.

    Examples
    --------
    >>> first = TextMeaning(1, "h1", ("Q", ""), "h1")
    >>> second = TextMeaning(2, "h2", ("Q?", ""), "h1")  # wording only
    >>> next_meaning(content_hash="h2", texts=("Q?", ""), earlier=[first], change="wording")
    'h1'
    >>> next_meaning(content_hash="h2", texts=("Q?", ""), earlier=[first], change="new")
    'h2'
    >>> next_meaning(content_hash="h1", texts=("Q", "Look."), earlier=[first], change="")
    'h1'
    >>> next_meaning(content_hash="h1", texts=("Q", "Look."), earlier=[first], change="new")[:8]
    'fcaad6ca'
    >>> next_meaning(content_hash="h3", texts=("R", ""), earlier=[first, second], change="")
    'h3'
    """
    newest = earlier[-1]
    if change == "wording":
        return newest.meaning
    restored = [one for one in earlier if (one.content_hash, one.texts) == (content_hash, texts)]
    if restored:
        return restored[-1].meaning
    if content_hash == newest.content_hash:
        return fresh_meaning(content_hash, newest.number + 1) if change == "new" else newest.meaning
    asked = [one for one in earlier if one.content_hash == content_hash]
    return asked[-1].meaning if asked else content_hash


def fresh_meaning(content_hash: str, number: int) -> str:
    """Return a new meaning for the same question, which raters read in another way from now on."""
    return hashlib.sha256(f"{content_hash} {number}".encode()).hexdigest()
