"""Finds the passages of articles that match a chat, with BM25; the result is the same on every machine."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.core.hashing import canonical, text_hash
from evaluation.core.types import Article, Chat, Criterion, Embedder, Passage, Setup, Vector
from evaluation.knowledge.core.articles import PASSAGE_TOKENS, passages_in, tokens_of
from evaluation.knowledge.core.synonyms import SYNONYMS
from evaluation.knowledge.core.words import language_of, stems_of, synonyms_of

if TYPE_CHECKING:
    from bm25s import BM25

_Scores = NDArray[np.float64]

RETRIEVER_VERSION = 2

# Flag of a True whose criterion found no passage: it rests on the silence of the knowledge.
TRUE_WITHOUT_PASSAGE = "true_without_passage"
# Flag of a verdict whose passages should have been ranked by vectors too, which the endpoint did not give.
LEXICAL_ONLY = "lexical_only"

_METHOD, _K1, _B = "lucene", 1.5, 0.75
_DIGITS = 4  # of a score; further ones may differ between machines
_FUSED_DIGITS = 6
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

_FUSION_K = 60  # of reciprocal rank fusion (Cormack et al. 2009)
_NEAREST = 10  # passages that the vectors of a criterion's articles add or raise

# The further settings of a judge with an embedding model.
HYBRID: Mapping[str, Any] = {"fusion": "reciprocal rank", "k": _FUSION_K, "nearest": _NEAREST}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages by criterion key. `lexical_only`: an embedding model was set, but gave no vectors."""

    passages: Mapping[str, tuple[Passage, ...]]
    lexical_only: bool = False


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
    """The passages of a set of articles, their texts with the title, and their index of words.

    It is None if no passage contains a word.
    """

    pieces: tuple[tuple[Article, int, int], ...]
    texts: tuple[str, ...]
    languages: tuple[str, ...]
    bm25: "BM25 | None"


async def retrieve_for(
    *, chat: Chat, criteria: Sequence[Criterion], setup: Setup, embedder: Embedder | None
) -> Retrieval:
    """Return the passages of a judge with this setup; by words only if the embedder gives no vectors."""
    if setup.knowledge != "retrieved":
        return Retrieval({})
    vectors = None
    if setup.embedding_model and embedder is not None:
        vectors = await embedder.embed(texts_to_embed(chat, criteria))
    passages = retrieve(chat=chat, criteria=criteria, tokens=setup.passage_tokens, vectors=vectors)
    return Retrieval(passages, lexical_only=bool(setup.embedding_model) and vectors is None)


def texts_to_embed(chat: Chat, criteria: Sequence[Criterion]) -> list[str]:
    """Return the texts whose vectors rank passages for a chat: all passages, and the pieces of the chat."""
    passages = [text for criterion in criteria for text in _index(criterion.articles).texts]
    return list(dict.fromkeys([*passages, *_pieces_of(_spoken(chat))])) if passages else []


def retrieve(
    *,
    chat: Chat,
    criteria: Sequence[Criterion],
    tokens: int,
    vectors: Mapping[str, Vector] | None = None,
) -> dict[str, tuple[Passage, ...]]:
    """Return the passages that each criterion of a group receives for a chat.

    The query is the messages of customer and bot, with less weight synonyms of their words, and with little
    the criterion's question; each criterion searches its own articles. Words are compared by their stems, in
    the language of each article. Passages without a common word, or with less than a fifth of the criterion's
    best score, are excluded. The best passages of the group fill the budget, each once; one that does not fit
    is skipped. Equal scores are ordered by article key and place. No network is used.

    With vectors, the ranking by words and the ten passages nearest to any piece of the chat are joined by
    reciprocal rank fusion; the scores are then the fused ones.

    Parameters
    ----------
    tokens : budget for the group's passages, in estimated tokens (characters / 4).
    vectors : by text, of length 1, for all of `texts_to_embed`.

    Returns
    -------
    By criterion key, best first: the chosen passages that the criterion found itself; () if it found none.
    """
    spoken = _spoken(chat)
    hits_by_key = {criterion.key: _search(criterion, spoken, vectors) for criterion in criteria}
    chosen = _chosen((hit for hits in hits_by_key.values() for hit in hits), tokens=tokens)
    return {
        key: tuple(
            Passage(hit.article, rank, hit.start, hit.end, hit.score)
            for rank, hit in enumerate((hit for hit in hits if hit.place in chosen), start=1)
        )
        for key, hits in hits_by_key.items()
    }


def matching_articles(*, articles: tuple[Article, ...], words: str) -> list[Article]:
    """Return the articles that a person searches for, best first.

    Articles with all words in the title come first, then those with all words in the text (also as parts of
    longer words), then those with a word of the same stem.

    Examples
    --------
    >>> tips = Article("tips", 1, "Tips", "Customers may tip. Refunds are separate.")
    >>> [article.key for article in matching_articles(articles=(tips,), words="refunded")]
    ['tips']
    """
    index = _index(articles)
    stems = {stem for language in index.languages for stem in stems_of(words, language)}
    scores: dict[str, float] = {}
    for (article, *_), score in zip(index.pieces, _bm25_scores(index, stems), strict=True):
        scores[article.key] = max(scores.get(article.key, 0.0), float(score))
    parts = words.casefold().split()
    ranked = []
    for article in articles:
        in_title = all(part in article.title.casefold() for part in parts)
        in_text = all(part in f"{article.title}\n{article.text}".casefold() for part in parts)
        score = scores.get(article.key, 0.0)
        if in_text or score > 0:
            ranked.append(((not in_title, not in_text, -score, article.key), article))
    return [article for _, article in sorted(ranked, key=lambda pair: pair[0])]


def _spoken(chat: Chat) -> str:
    return "\n".join(m.content for m in chat.messages if m.role in ("user", "assistant"))


def _pieces_of(spoken: str) -> list[str]:
    return [spoken[start:end] for start, end in passages_in(spoken)]


def _search(criterion: Criterion, spoken: str, vectors: Mapping[str, Vector] | None) -> list[_Hit]:
    """Return the passages that a criterion finds in its articles, best first."""
    index = _index(criterion.articles)
    if index.bm25 is None:
        return []
    scores = np.round(_scores(index, spoken, criterion.question), _DIGITS)
    enough = np.flatnonzero((scores > 0) & (scores >= _LEAST_SHARE * scores.max()))
    hits = _hits(index, scores, enough)
    return hits if vectors is None else _fused(hits, _nearest(index, spoken, vectors))


def _hits(index: _Index, scores: _Scores, places: NDArray[np.intp]) -> list[_Hit]:
    hits = (_Hit(*index.pieces[int(place)], float(scores[place])) for place in places)
    return sorted(hits, key=lambda hit: hit.order)


def _nearest(index: _Index, spoken: str, vectors: Mapping[str, Vector]) -> list[_Hit]:
    """Return the passages whose vectors are nearest to that of any piece of the chat, nearest first."""
    said = [vectors[piece] for piece in _pieces_of(spoken)]
    if not said:
        return []
    passages = np.stack([vectors[text] for text in index.texts])
    cosines = np.round((passages @ np.stack(said).T).max(axis=1).astype(np.float64), _DIGITS)
    return _hits(index, cosines, np.arange(len(index.texts)))[:_NEAREST]


def _fused(*rankings: Sequence[_Hit]) -> list[_Hit]:
    """Join rankings by reciprocal rank fusion."""
    shares: dict[tuple[str, int], float] = {}
    hits: dict[tuple[str, int], _Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            hits[hit.place] = hit
            shares[hit.place] = shares.get(hit.place, 0.0) + 1 / (_FUSION_K + rank)
    fused = (replace(hit, score=round(shares[place], _FUSED_DIGITS)) for place, hit in hits.items())
    return sorted(fused, key=lambda hit: hit.order)


def _scores(index: _Index, spoken: str, question: str) -> _Scores:
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


def _bm25_scores(index: _Index, stems: Iterable[str]) -> _Scores:
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
    pieces = tuple((article, start, end) for article in by_key for start, end in passages_in(article.text))
    texts = tuple(f"{article.title}\n{article.text[start:end]}" for article, start, end in pieces)
    language = {article.key: language_of(f"{article.title}\n{article.text}") for article in by_key}
    words = [stems_of(text, language[article.key]) for text, (article, *_) in zip(texts, pieces, strict=True)]
    languages = tuple(sorted(set(language.values())))
    if not any(words):
        return _Index(pieces, texts, languages, None)
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # otherwise it logs every step
    bm25 = BM25(k1=_K1, b=_B, method=_METHOD)
    bm25.index(words, show_progress=False)
    return _Index(pieces, texts, languages, bm25)
