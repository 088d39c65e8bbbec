"""What can be searched: each feature says which of its things match and are open to a user."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db.models import Q
from django.utils.module_loading import import_string

from common.search.words import asked_words

LONGEST_QUERY = 200
EXCERPT = 90  # characters
LONGEST_ID = 18  # digits that every database takes for an id


@dataclass(frozen=True, slots=True)
class Query:
    """A search text, its parts between spaces, and its words for an index."""

    text: str
    parts: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Query":
        """Read any text; what is over the limit is ignored."""
        text = text.replace("\x00", " ")[:LONGEST_QUERY].strip()
        # Quotes and other signs around a word are no part of it.
        parts = (part.strip("\"'“”‘’„«»()[]{}*,;:?!#") for part in text.split())
        return cls(text, tuple(part for part in parts if part)[:8], tuple(asked_words(text)))

    @property
    def number(self) -> int | None:
        """Return the id that the text names: `12`, `#12` or `run 12`."""
        last = self.parts[-1] if 1 <= len(self.parts) <= 2 else ""
        digits = last.isascii() and last.isdecimal() and len(last) < LONGEST_ID
        return int(last) if digits and all(part.isalpha() for part in self.parts[:-1]) else None

    def matches(self, *fields: str) -> Q:
        """Build the condition that each part occurs in one of these fields."""
        return reduce(and_, [_in_one(part, fields) for part in self.parts], Q())

    def fits(self, text: str) -> bool:
        """Return whether each part occurs in a text."""
        return bool(self.parts) and all(part.casefold() in text.casefold() for part in self.parts)


def _in_one(part: str, fields: Sequence[str]) -> Q:
    # SQLite ignores the case of plain letters only.
    cases = [part] if part.isascii() else dict.fromkeys((part, part.lower(), part.upper(), part.capitalize()))
    return reduce(or_, [Q(**{f"{field}__icontains": one}) for field in fields for one in cases])


@dataclass(frozen=True, slots=True)
class Hit:
    """A thing that was found, with the page that shows it."""

    label: str
    url: str
    detail: str = ""


# What a user looks for, the user, the most hits -> what the user may open. A constant number of queries.
Provider = Callable[[Query, Any, int], Sequence[Hit]]


@dataclass(frozen=True, slots=True)
class Group:
    """The hits of one kind; `more`: there are others. `start`: the place of the first one in all hits."""

    kind: str
    title: str
    hits: tuple[Hit, ...]
    more: bool
    start: int = 0


def search(text: str, *, user: AbstractUser, limit: int, kind: str = "") -> list[Group]:
    """Return what the user may open, by kind; only kinds with a hit."""
    query, groups, start = Query.of(text), [], 0
    if not query.parts:
        return []
    for name, (title, path) in settings.SEARCH_PROVIDERS.items():
        if kind and name != kind:
            continue
        provider: Provider = import_string(path)
        hits = tuple(provider(query, user, limit + 1))
        if hits:
            groups.append(Group(name, title, hits[:limit], len(hits) > limit, start))
            start += len(hits[:limit])
    return groups


def excerpt(texts: Iterable[str], query: Query) -> str:
    """Return the text around the first part of the query that occurs in one of these; "" without."""
    for text in texts:
        folded = text.casefold()
        for part in query.parts:
            at = folded.find(part.casefold())
            if at >= 0:
                # Begins with a whole word, where one begins near.
                start = text.find(" ", at - EXCERPT // 3, at) + 1 if at > EXCERPT // 3 else 0
                start = start or max(0, at - EXCERPT // 3)
                cut = " ".join(text[start : start + EXCERPT].split())
                return f"{'…' * bool(start)}{cut}{'…' * (start + EXCERPT < len(text))}"
    return ""
