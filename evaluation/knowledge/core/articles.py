"""Which articles a call receives, and the passages that articles are searched by."""

import re
from collections.abc import Iterator, Sequence

from evaluation.core.types import Article, Criterion

PASSAGE_TOKENS = 120
CHARACTERS_A_TOKEN = 4

_LONGEST = PASSAGE_TOKENS * CHARACTERS_A_TOKEN
_SHORTEST = _LONGEST // 4  # a cut that would leave less is moved further
_INK = re.compile(r"\S")
_HEADING = re.compile(r"#{1,6}[ \t]")
# Where a passage may end, best first: before a blank line, a line end, after a sentence, before a space.
_CUTS = tuple(map(re.compile, (r"(?=\n[ \t]*\n)", r"(?=\n)", r"(?<=[.!?])(?=\s)", r"(?=\s)")))


def group_articles(criteria: Sequence[Criterion]) -> tuple[Article, ...]:
    """Return the articles of a group (knowledge mode static), each once, ordered by key.

    Raises
    ------
    ValueError : two criteria have different versions of one article; a judge pins one.
    """
    by_key: dict[str, Article] = {}
    for article in (article for criterion in criteria for article in criterion.articles):
        if by_key.setdefault(article.key, article) != article:
            raise ValueError(f"Article {article.key!r} comes in two versions in one group.")
    return tuple(by_key[key] for key in sorted(by_key))


def tokens_of(characters: int) -> int:
    """Return the estimated tokens of a number of characters: a quarter, rounded up.

    Examples
    --------
    >>> tokens_of(401)
    101
    """
    return -(-characters // CHARACTERS_A_TOKEN)


def passages_in(text: str) -> list[tuple[int, int]]:
    """Split an article into passages.

    A heading begins a passage. Text of more than about 120 tokens is cut at a blank line, else at a line end,
    a sentence or a space.

    Returns
    -------
    (start, end) of each passage in order, in code points, end excluded. Together they contain every character
    that is not white space, once.

    Examples
    --------
    >>> passages_in("# Returns\\n\\nWithin 30 days.\\n\\n# Refunds\\n\\nTo the card.")
    [(0, 26), (28, 51)]
    """
    return [piece for start, end in _sections(text) for piece in _pieces(text, start, end)]


def _sections(text: str) -> Iterator[tuple[int, int]]:
    """Return the text from heading to heading; a heading without text joins the next one."""
    begin, place, only_headings = 0, 0, True
    for line in text.splitlines(keepends=True):
        is_heading = bool(_HEADING.match(line))
        if is_heading and not only_headings:
            yield begin, place
            begin, only_headings = place, True
        elif line.strip() and not is_heading:
            only_headings = False
        place += len(line)
    yield begin, place


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while match := _INK.search(text, start, end):
        start = match.start()
        cut = end if end - start <= _LONGEST else start + _cut(text[start : start + _LONGEST + 1])
        yield start, start + len(text[start:cut].rstrip())
        start = cut


def _cut(window: str) -> int:
    """Return where to end a passage that begins with `window`, which is one character too long."""
    for place in _CUTS:
        places = [match.start() for match in place.finditer(window) if match.start() >= _SHORTEST]
        if places:
            return places[-1]
    return _LONGEST
