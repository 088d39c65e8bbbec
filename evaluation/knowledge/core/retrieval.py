"""Finds the passages of articles that match a chat, with BM25; the result is the same on every machine."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.core.hashing import canonical, text_hash
from evaluation.core.types import Article, Chat, Criterion, Passage
from evaluation.knowledge.core.articles import PASSAGE_TOKENS, passages_in, tokens_of
from evaluation.knowledge.core.synonyms import SYNONYMS
from evaluation.knowledge.core.words import language_of, stems_of, synonyms_of

if TYPE_CHECKING:
    from bm25s import BM25

RETRIEVER_VERSION = 2

# Flag of a True whose criterion found no passage: it rests on the silence of the knowledge.
TRUE_WITHOUT_PASSAGE = "true_without_passage"

_METHOD, _K1, _B = "lucene", 1.5, 0.75
_DIGITS = 4  # of a score; further ones may differ between machines
_MOST_REPEATS = 3  # the most that repetitions of a word count
_LEAST_SHARE = 0.2  # of the criterion's best score; lower scores share only a common word with the chat
_SYNONYM_WEIGHT = 0.7  # of a passage's score for a synonym of a word of the chat
_QUESTION_WEIGHT = 0.1  # of its score for a word of the criterion's question, the same for every chat

# The settings that affect retrieval, besides articles, chat, question and budget.
RETRIEVER: Mapping[str, Any] = {
    "version": RETRIEVER_VERSION,
    "method": f"bm25 {_METHOD}",
    "k1": _K1,
    "b": _B,
    "passage_tokens": PASSAGE_TOKENS,
    "most_repeats": _MOST_REPEATS,
    "least_share": _LEAST_SHARE,
    "words": "stems by language",
    "synonyms": text_hash(canonical(dict(SYNONYMS)))[:12],
    "synonym_weight": _SYNONYM_WEIGHT,
    "question_weight": _QUESTION_WEIGHT,
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
    languages: tuple[str, ...]
    bm25: "BM25 | None"


def retrieve(*, chat: Chat, criteria: Sequence[Criterion], tokens: int) -> dict[str, tuple[Passage, ...]]:
    """Return the passages that each criterion of a group receives for a chat.

    The query is the messages of customer and bot, with less weight synonyms of their words, and with little
    the criterion's question; each criterion searches its own articles. Words are compared by their stems, in
    the language of each article. Passages without a common word, or with less than a fifth of the criterion's
    best score, are excluded. The best passages of the group fill the budget, each once; one that does not fit
    is skipped. Equal scores are ordered by article key and place. No network is used.

    Parameters
    ----------
    tokens : budget for the group's passages, in estimated tokens (characters / 4).

    Returns
    -------
    By criterion key, best first: the chosen passages that the criterion found itself; () if it found none.
    """
    spoken = "\n".join(m.content for m in chat.messages if m.role in ("user", "assistant"))
    hits_by_key = {criterion.key: _search(criterion, spoken) for criterion in criteria}
    chosen = _chosen((hit for hits in hits_by_key.values() for hit in hits), tokens=tokens)
    return {
        key: tuple(
            Passage(hit.article, rank, hit.start, hit.end, hit.score)
            for rank, hit in enumerate((hit for hit in hits if hit.place in chosen), start=1)
        )
        for key, hits in hits_by_key.items()
    }


def _search(criterion: Criterion, spoken: str) -> list[_Hit]:
    """Return the passages that a criterion finds in its articles, best first."""
    index = _index(criterion.articles)
    if index.bm25 is None:
        return []
    scores = np.round(_scores(index, spoken, criterion.question), _DIGITS)
    enough = np.flatnonzero((scores > 0) & (scores >= _LEAST_SHARE * scores.max()))
    hits = [_Hit(*index.pieces[place], float(scores[place])) for place in enough.tolist()]
    return sorted(hits, key=lambda hit: hit.order)


def _scores(index: _Index, spoken: str, question: str) -> np.ndarray:
    """Return each passage's score: words of the chat, their synonyms, and words of the question."""
    said: Counter[str] = Counter()
    synonyms: set[str] = set()
    asked: set[str] = set()
    for language in index.languages:
        stems = Counter(stems_of(spoken, language))
        said |= stems
        mates = synonyms_of(language)
        synonyms.update(mate for stem in stems for mate in mates.get(stem, ()))
        asked.update(stems_of(question, language))
    repeated = [stem for stem, n in said.items() for _ in range(min(n, _MOST_REPEATS))]
    return (
        _bm25_scores(index, repeated)
        + _SYNONYM_WEIGHT * _bm25_scores(index, synonyms - said.keys())
        + _QUESTION_WEIGHT * _bm25_scores(index, asked - said.keys())
    )


def _bm25_scores(index: _Index, stems: Iterable[str]) -> np.ndarray:
    known = index.bm25.vocab_dict if index.bm25 else {}
    # Sorted: the order of a sum of floats must not depend on the process.
    query = sorted(stem for stem in stems if stem in known)
    if index.bm25 is None or not query:
        return np.zeros(len(index.pieces))
    return np.asarray(index.bm25.get_scores(query), dtype=np.float64)


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

    by_key = sorted(articles, key=lambda article: article.key)
    languages = [language_of(f"{article.title}\n{article.text}") for article in by_key]
    pieces = tuple((article, start, end) for article in by_key for start, end in passages_in(article.text))
    words = [
        stems_of(f"{article.title}\n{article.text[start:end]}", language)
        for article, language in zip(by_key, languages, strict=True)
        for start, end in passages_in(article.text)
    ]
    spoken = tuple(sorted(set(languages)))
    if not any(words):
        return _Index(pieces, spoken, None)
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # otherwise it logs every step
    bm25 = BM25(k1=_K1, b=_B, method=_METHOD)
    bm25.index(words, show_progress=False)
    return _Index(pieces, spoken, bm25)
