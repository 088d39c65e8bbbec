"""Clusters of rationales by the terms that they share; texts without close neighbours stay unclustered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import eigh
from scipy.sparse import csr_matrix, hstack
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import pdist, squareform
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from alignment.issues.core.phrases import grown_phrases, terms_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST_TEXTS = 10  # of a group: in fewer, any shared phrase looks like a problem
FEWEST = 5  # texts of a cluster; of up to 32 texts a quarter, at least 8 of more
SHARE, SHARE_OF_FEW, ENOUGH = 1 / 60, 1 / 4, 8  # smallest cluster, as a share of the texts
COHESION, OF_SMALL, SMALL = 0.25, 0.3, 20  # mean cosine similarity of its texts; of fewer than 20
DIMENSIONS = 100
MOST_DENSE = 1_000  # rows whose products are decomposed as a whole
MOST_CLUSTERED = 4_000  # the other texts join the cluster that is closest to them
FARTHEST = 0.8  # mean cosine distance at which clusters are no longer joined
LIFT = 2  # how many times more frequent an own term is in its group than in all others
COMPARED_GROUPS = 4  # with fewer groups, one problem may be most of all
OWN_TERM = 0.7  # share of the texts with its own term that a cluster must hold; that of all its texts: half
KEPT_FROM = 0.4  # a text of a cluster with less similarity to the centroid leaves it
JOINED_FROM = 0.45  # a text with this similarity to a centroid may belong to it
TOPIC_WEIGHT = 0.3
LEAST_RARITY = 0.1  # also a term that every text has counts a little
MOST_TERMS, MOST_FEATURES = 12, 50_000
CENTROID_TERMS = 200
MEANING, PROJECTED = 0.7, 128  # weight of embeddings beside words, and their dimensions here


@dataclass(frozen=True, slots=True)
class FailingText:
    """Why a chat failed: its topic, and the rationale with the quoted messages.

    Texts of different groups, such as criteria, are never in one cluster.
    """

    topic: str
    text: str
    group: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Texts about one problem.

    Parameters
    ----------
    group : of its texts.
    members : positions of its texts, the most typical first.
    closeness : cosine similarity of each member to the centroid, in the same order.
    terms : terms that are frequent in it and rare elsewhere, the best first.
    bits : for each member, bit i is set where its text has the i-th term.
    centroid : weight by hashed term, of length 1. The keyed hashes say nothing about the words.
    """

    group: int
    members: tuple[int, ...]
    closeness: tuple[float, ...]
    terms: tuple[str, ...]
    bits: tuple[int, ...]
    centroid: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Meanings:
    """Embeddings of texts, one row each. `space` names endpoint and model: others are not comparable."""

    vectors: Floats
    space: str


@dataclass(frozen=True)
class Corpus:
    """Texts as rows of length 1: their terms weighted by rarity, their topic, and their meaning if known."""

    rows: csr_matrix
    counts: csr_matrix
    words: tuple[str, ...]
    topics: tuple[str, ...]
    groups: Ints
    texts: tuple[str, ...]
    space: str = ""

    @classmethod
    def of(
        cls, texts: Sequence[FailingText], *, meanings: Meanings | None = None, key: bytes = b""
    ) -> "Corpus":
        """Count single words and pairs of words that at least two texts have.

        With embeddings, texts in different languages may be similar. The key hides what a dimension means.
        """
        count = CountVectorizer(
            analyzer=terms_of, min_df=2 if len(texts) > 1 else 1, binary=True, max_features=MOST_FEATURES
        )
        try:
            counts = csr_matrix(count.fit_transform([one.text for one in texts]), dtype=np.float64)
            words = tuple(count.get_feature_names_out())
        except ValueError:  # no word is shared
            counts, words = csr_matrix((len(texts), 0)), ()
        shares = np.asarray(counts.sum(axis=0)).ravel()
        rarity = np.maximum(np.log((1 + len(texts)) / (1 + shares)), LEAST_RARITY)
        weighted = normalize(counts.multiply(rarity).tocsr()) if words else counts
        topics = tuple(sorted({one.topic for one in texts}))
        place = {topic: number for number, topic in enumerate(topics)}
        columns = [place[one.topic] for one in texts]
        marks = csr_matrix(
            (np.full(len(texts), TOPIC_WEIGHT), (range(len(texts)), columns)), (len(texts), len(topics))
        )
        groups = np.array([one.group for one in texts], dtype=np.int64)
        parts = [weighted, marks]
        if meanings is not None and texts:
            near = _projected(_centred(meanings.vectors, groups), key)
            parts = [
                weighted * np.sqrt(1 - MEANING),
                marks,
                csr_matrix(near * np.sqrt(MEANING)),
            ]
        rows, said = hstack(parts).tocsr(), tuple(one.text for one in texts)
        space = meanings.space if meanings else ""
        return cls(normalize(rows) if texts else rows, counts, words, topics, groups, said, space)

    def feature(self, column: int) -> str:
        """Name a column."""
        known = len(self.words)
        if column < known:
            return self.words[column]
        if column < known + len(self.topics):
            return f"topic\0{self.topics[column - known]}"
        return f"meaning\0{self.space}\0{column - known - len(self.topics)}"


def _centred(vectors: Floats, groups: Ints) -> Floats:
    """Return vectors without what all groups have in common: texts of one kind are all somewhat similar.

    What is left has length 1 on average. Of few groups it may be noise: then it stays as small as it is.
    """
    numbers = np.unique(groups)
    means = [vectors[groups == group].mean(axis=0) for group in numbers]
    centred: Floats = vectors - np.mean(means, axis=0)
    size = float(np.sqrt((centred**2).sum(axis=1).mean()))
    return centred / size if len(numbers) >= COMPARED_GROUPS and size > 0 else centred


def _projected(vectors: Floats, key: bytes) -> Floats:
    """Return a random projection by key: angles stay nearly the same (Johnson & Lindenstrauss 1984)."""
    seed = int.from_bytes(blake2b(b"projection", key=key[:64], digest_size=8).digest())
    signs = np.random.default_rng(seed).integers(0, 2, (vectors.shape[1], PROJECTED)) * 2 - 1
    projected: Floats = vectors @ signs / np.sqrt(PROJECTED)
    return projected


def clusters_of(corpus: Corpus, *, key: bytes, seed: int = 0) -> list[Cluster]:
    """Cluster the texts of each group, the largest cluster first; texts without near ones belong to none.

    Average linkage (Sokal & Michener 1958) on cosine distances of TF-IDF after a truncated SVD. On generated
    texts it found more of the planted problems than HDBSCAN, which loses a single one between noise, and it
    needs no number of clusters as NMF does. Of more than 4,000 texts a random part is clustered, and the rest
    joins it. The same texts, key and seed give the same clusters.

    >>> said = ["tracking link instead of a parcel status", "voucher rejected without reason"]
    >>> texts = [FailingText("a", said[n % 2]) for n in range(40)]
    >>> [len(one.members) for one in clusters_of(Corpus.of(texts), key=b"k")]
    [20, 20]
    """
    if not corpus.words:
        return []
    found = []
    for group in np.unique(corpus.groups).tolist():
        rows = np.flatnonzero(corpus.groups == group)
        labels, own = _labels(corpus.rows[rows], seed), _own_terms(corpus, rows)
        for one in np.unique(labels[labels >= 0]):
            if _is_close(corpus.rows[rows[labels == one]]) and own(rows[labels == one]):
                found.append(_cluster(corpus, group, rows[labels == one], key))
    return sorted(found, key=lambda one: (-len(one.members), one.members[0]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where texts may belong: the group and the centroid of an issue."""

    group: int
    centroid: Mapping[str, float]


def closest(
    corpus: Corpus, among: Sequence[int], places: Mapping[int, Place], *, key: bytes
) -> dict[int, tuple[int, float]]:
    """Return, for those of these texts that are close to a place of their group, its id and the similarity.

    `among` : positions of the texts that are looked at; terms are weighted by their rarity in all texts.
    """
    if not among or not places:
        return {}
    ids, rows = list(places), corpus.rows[list(among)]
    columns = np.unique(rows.indices)
    names = [_hashed(corpus.feature(column), key) for column in columns.tolist()]
    table = np.array([[places[pk].centroid.get(name, 0.0) for name in names] for pk in ids])
    near = rows[:, columns] @ table.T
    groups = np.array([places[pk].group for pk in ids])
    found = {}
    for row, position in zip(near, among, strict=True):
        own = np.where(groups == corpus.groups[position], row, 0.0)
        if own.max() >= JOINED_FROM:
            found[position] = (ids[int(own.argmax())], round(float(own.max()), 4))
    return found


def cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine similarity of two centroids of length 1."""
    return sum(weight * other.get(name, 0.0) for name, weight in one.items())


def _labels(rows: csr_matrix, seed: int) -> Ints:
    """Return the cluster of each row; -1 for none."""
    labels: Ints = np.full(rows.shape[0], -1)
    if len(labels) < FEWEST_TEXTS:
        return labels
    part = _part(len(labels), seed)
    labels[part] = _linked(rows[part])
    return _by_centroid(rows, labels, np.setdiff1d(np.arange(len(labels)), part))


def _part(count: int, seed: int) -> Ints:
    if count <= MOST_CLUSTERED:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, MOST_CLUSTERED, replace=False))


def _linked(rows: csr_matrix) -> Ints:
    """Cluster rows by average linkage; those in small clusters are in none."""
    # NB: rounded, so that equal texts are at distance 0, whatever the order of additions.
    apart = np.clip(np.nan_to_num(np.round(_distances(rows), 6), nan=1.0), 0, None)
    found = fcluster(linkage(apart, "average"), FARTHEST, "distance")
    sizes = np.bincount(found)
    smallest = smallest_cluster(len(found))
    return np.where(sizes[found] >= smallest, found, -1)


def smallest_cluster(texts: int) -> int:
    """Return the fewest texts of a cluster among so many.

    >>> [smallest_cluster(n) for n in (10, 28, 200, 1_200)]
    [5, 7, 8, 20]
    """
    return max(FEWEST, min(round(texts * SHARE_OF_FEW), ENOUGH), round(texts * SHARE))


def _distances(rows: csr_matrix) -> Floats:
    """Return the cosine distance of each pair of rows of length 1, after a truncated SVD of many rows.

    From the products of the rows with each other: there are fewer rows than terms.
    """
    count = rows.shape[0]
    if count <= DIMENSIONS:
        near: Floats = squareform((rows @ rows.T).toarray(), checks=False)
        return 1 - near
    if count <= MOST_DENSE:
        products = (rows @ rows.T).toarray()
        values, vectors = eigh(products, subset_by_index=(count - DIMENSIONS, count - 1))
    else:
        operator = LinearOperator((count, count), matvec=lambda one: rows @ (rows.T @ one), dtype=np.float64)
        # NB: a fixed start gives the same dimensions again.
        values, vectors = eigsh(operator, DIMENSIONS, v0=np.full(count, count**-0.5))
    distances: Floats = pdist(vectors * np.sqrt(np.clip(values, 0, None)), "cosine")
    return distances


def _by_centroid(rows: csr_matrix, labels: Ints, rest: Ints) -> Ints:
    """Add the texts that were not clustered to the closest cluster; texts far from their own leave it.

    NB: the reduced space leaves out rare terms, so that texts about other things look similar there.
    """
    known = np.unique(labels[labels >= 0])
    if not len(known):
        return labels
    means = [np.asarray(rows[labels == one].mean(axis=0)).ravel() for one in known]
    near = rows @ normalize(np.vstack(means)).T
    own = near[np.arange(len(labels)), np.searchsorted(known, labels).clip(0, len(known) - 1)]
    kept = np.where((labels >= 0) & (own >= KEPT_FROM), labels, -1)
    best, closest_one = near.max(axis=1), known[near.argmax(axis=1)]
    kept[rest] = np.where(best[rest] >= JOINED_FROM, closest_one[rest], -1)
    sizes = dict(zip(*np.unique(kept, return_counts=True), strict=True))
    return np.where([sizes[one] >= FEWEST for one in kept], kept, -1)


def _is_close(rows: csr_matrix) -> bool:
    """Whether rows of length 1 are similar to each other."""
    count, total = rows.shape[0], np.asarray(rows.sum(axis=0)).ravel()
    least = OF_SMALL if count < SMALL else COHESION
    return bool(total @ total - count >= least * count * (count - 1))


def _own_terms(corpus: Corpus, rows: Ints) -> Callable[[Ints], bool]:
    """Return whether a cluster of a group has a term of half of its texts that few other texts have.

    With embeddings, several terms, each of a quarter of its texts.

    Phrases of every rationale are no own terms: they are as frequent in the other groups.
    """
    everywhere = np.asarray(corpus.counts.sum(axis=0)).ravel()
    here = np.asarray(corpus.counts[rows].sum(axis=0)).ravel()
    others = corpus.counts.shape[0] - len(rows)
    few = len(np.unique(corpus.groups)) < COMPARED_GROUPS
    rare = few | (here * others >= LIFT * (everywhere - here) * len(rows))

    # NB: texts in several languages have no term in common, but each language its own.
    share = 1 / 4 if corpus.space else 1 / 2

    def has_one(members: Ints) -> bool:
        counts = corpus.counts[members]
        inside = np.asarray(counts.sum(axis=0)).ravel()
        own = rare & (inside >= len(members) * share) & (inside >= OWN_TERM * here) & (inside > 0)
        return bool(own.any()) and 2 * int((counts[:, own].sum(axis=1) > 0).sum()) >= len(members)

    return has_one


def _cluster(corpus: Corpus, group: int, members: Ints, key: bytes) -> Cluster:
    rows = corpus.rows[members]
    centroid = normalize(np.asarray(rows.mean(axis=0)))[0]
    near = rows @ centroid
    order = np.lexsort((members, -np.round(near, 6)))
    ordered = members[order].tolist()
    best = [corpus.words[column] for column in _best_terms(corpus, members)]
    phrases = grown_phrases(best, [corpus.texts[member] for member in ordered])[:MOST_TERMS]
    return Cluster(
        group=group,
        members=tuple(ordered),
        closeness=tuple(np.round(near[order], 4).tolist()),
        terms=tuple(one.text for one in phrases),
        bits=tuple(
            sum((number in one.texts) << place for place, one in enumerate(phrases))
            for number in range(len(ordered))
        ),
        centroid=_hashed_centroid(corpus, centroid, key),
    )


def _best_terms(corpus: Corpus, members: Ints) -> list[int]:
    """Return the columns of the terms that tell a cluster from the other texts.

    By share in the cluster times log of how many times larger it is than elsewhere. A pair of words hides
    its single words.
    """
    size, total = len(members), corpus.counts.shape[0]
    inside = np.asarray(corpus.counts[members].sum(axis=0)).ravel()
    outside = np.asarray(corpus.counts.sum(axis=0)).ravel() - inside
    share, rest = inside / size, (outside + 0.5) / (total - size + 1)
    score = np.where(inside >= min(3, size), share * np.log(np.maximum(share, 1e-9) / rest), 0.0)
    chosen: list[int] = []
    for column in np.lexsort((np.arange(len(score)), -np.round(score, 9))).tolist():
        if score[column] <= 0 or len(chosen) == MOST_TERMS:
            break
        words = set(corpus.words[column].split())
        if not any(words & set(corpus.words[other].split()) for other in chosen):
            chosen.append(column)
    return chosen


def _hashed_centroid(corpus: Corpus, centroid: Floats, key: bytes) -> dict[str, float]:
    size = np.round(np.abs(centroid), 9)
    most = CENTROID_TERMS + (PROJECTED if corpus.space else 0)
    largest = np.lexsort((np.arange(len(centroid)), -size))[:most]
    kept: Any = centroid[largest]
    kept = kept / max(float(np.linalg.norm(kept)), 1e-9)
    return {
        _hashed(corpus.feature(column), key): round(weight, 4)
        for column, weight in zip(largest.tolist(), kept.tolist(), strict=True)
        if weight
    }


def _hashed(term: str, key: bytes) -> str:
    return blake2b(term.encode(), key=key[:64], digest_size=6).hexdigest()
