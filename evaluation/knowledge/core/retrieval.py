"""Finds the passages of articles that match a chat, with BM25; the result is the same on every machine."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.core.types import Article, Chat, Criterion, Passage
from evaluation.knowledge.core.articles import PASSAGE_TOKENS, passages_in, tokens_of

if TYPE_CHECKING:
    from bm25s import BM25

RETRIEVER_VERSION = 1

_METHOD, _K1, _B = "lucene", 1.5, 0.75
_DIGITS = 4  # of a score; further ones may differ between machines
_MOST_REPEATS = 3  # the most that repetitions of a word count
_LEAST_SHARE = 0.2  # of the criterion's best score; lower scores share only a common word with the chat
_WORD = re.compile(r"\w\w+")

# The settings that affect retrieval, besides articles, chat, question and budget.
RETRIEVER: Mapping[str, Any] = {
    "version": RETRIEVER_VERSION,
    "method": f"bm25 {_METHOD}",
    "k1": _K1,
    "b": _B,
    "passage_tokens": PASSAGE_TOKENS,
    "most_repeats": _MOST_REPEATS,
    "least_share": _LEAST_SHARE,
}


@dataclass(frozen=True, slots=True)
class _Hit:
    """A passage that a criterion found, with its score."""

    article: Article
    start: int
    end: int
    score: float

    @property
    def place(self) -> tuple[str, int]:
        return self.article.key, self.start

    @property
    def order(self) -> tuple[float, str, int]:
        return -self.score, *self.place


@dataclass(frozen=True, slots=True)
class _Index:
    """The passages of a set of articles and their index; None if no passage contains a word."""

    pieces: tuple[tuple[Article, int, int], ...]
    bm25: "BM25 | None"


def retrieve(*, chat: Chat, criteria: Sequence[Criterion], tokens: int) -> dict[str, tuple[Passage, ...]]:
    """Return the passages that each criterion of a group receives for a chat.

    The query is the messages of customer and bot and the criterion's question; each criterion searches its
    own articles. Passages without a common word, or with less than a fifth of the criterion's best score, are
    excluded. The best passages of the group fill the budget, each once; one that does not fit is skipped.
    Equal scores are ordered by article key and place. No network is used.

    Parameters
    ----------
    tokens : budget for the group's passages, in estimated tokens (characters / 4).

    Returns
    -------
    By criterion key, best first: the chosen passages that the criterion found itself; () if it found none.
    """
    words = _words("\n".join(m.content for m in chat.messages if m.role in ("user", "assistant")))
    hits_by_key = {criterion.key: _search(criterion, words) for criterion in criteria}
    chosen = _chosen((hit for hits in hits_by_key.values() for hit in hits), tokens=tokens)
    return {
        key: tuple(
            Passage(hit.article, rank, hit.start, hit.end, hit.score)
            for rank, hit in enumerate((hit for hit in hits if hit.place in chosen), start=1)
        )
        for key, hits in hits_by_key.items()
    }


def _search(criterion: Criterion, chat_words: Sequence[str]) -> list[_Hit]:
    """Return the passages that a criterion finds in its articles, best first."""
    index = _index(criterion.articles)
    if index.bm25 is None:
        return []
    query_words = Counter([*chat_words, *_words(criterion.question)])
    known = index.bm25.vocab_dict
    query = [word for word, n in query_words.items() if word in known for _ in range(min(n, _MOST_REPEATS))]
    if not query:
        return []
    scores = np.round(index.bm25.get_scores(query).astype(np.float64), _DIGITS)
    enough = np.flatnonzero((scores > 0) & (scores >= _LEAST_SHARE * scores.max()))
    hits = [_Hit(*index.pieces[place], float(scores[place])) for place in enough.tolist()]
    return sorted(hits, key=lambda hit: hit.order)


def _chosen(hits: Iterable[_Hit], *, tokens: int) -> set[tuple[str, int]]:
    """Return the places of the best passages within the budget."""
    chosen: set[tuple[str, int]] = set()
    for hit in sorted(hits, key=lambda hit: hit.order):
        size = tokens_of(hit.end - hit.start)
        if hit.place not in chosen and size <= tokens:
            chosen.add(hit.place)
            tokens -= size
    return chosen


@lru_cache(maxsize=64)
def _index(articles: tuple[Article, ...]) -> _Index:
    """Return the index of these articles; the article's title counts for each of its passages."""
    from bm25s import BM25  # heavy (SciPy's sparse matrices); only judges that retrieve need it

    pieces = tuple(
        (article, start, end)
        for article in sorted(articles, key=lambda article: article.key)
        for start, end in passages_in(article.text)
    )
    words = [_words(f"{article.title}\n{article.text[start:end]}") for article, start, end in pieces]
    if not any(words):
        return _Index(pieces, None)
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # otherwise it logs every step
    bm25 = BM25(k1=_K1, b=_B, method=_METHOD)
    bm25.index(words, show_progress=False)
    return _Index(pieces, bm25)


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, without English function words."""
    return [word for word in _WORD.findall(text.casefold()) if word not in _function_words()]


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(STOPWORDS_EN_PLUS)
