"""Which clusters of a week are issues of earlier weeks: recurring, merged, split."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from alignment.issues.core.clusters import cosine

SAME_FROM = 0.4  # similarity of centroids, or share of common chats
MERGED_FROM = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster of a week: its centroid and its chats."""

    centroid: Mapping[str, float]
    chats: frozenset[int]


@dataclass(frozen=True, slots=True)
class Known:
    """An issue: its newest centroid, its chats of the same week, and the issue that it was merged into."""

    pk: int
    centroid: Mapping[str, float]
    chats: frozenset[int] = frozenset()
    merged_into: int | None = None


@dataclass(frozen=True)
class Matches:
    """For each cluster the id of its issue, None for a new one; merged issues, with what each became part of.

    `merged` names a position of a cluster. `apart` are issues that were merged and have a cluster of their
    own again.
    """

    issues: tuple[int | None, ...]
    merged: Mapping[int, int] = field(default_factory=dict)
    apart: frozenset[int] = frozenset()


def match_clusters(found: Sequence[Found], known: Sequence[Known]) -> Matches:
    """Match clusters to issues, one to one, with the largest sum of similarities (Hungarian algorithm).

    The similarity is the cosine of the centroids, or the share of common chats if that is larger. An issue
    without a cluster of its own is merged into the cluster that it is similar to. A cluster that looks like a
    merged issue belongs to what that became part of, unless this has a cluster of its own: then they split.

    Kuhn (1955), Naval Research Logistics Quarterly 2:83.

    >>> one, two = Found({"a": 1.0}, frozenset({1})), Found({"b": 1.0}, frozenset({2}))
    >>> match_clusters([one, two], [Known(7, {"b": 1.0})]).issues
    (None, 7)
    """
    if not found or not known:
        return Matches((None,) * len(found))
    near = np.array([[_similarity(one, issue) for issue in known] for one in found])
    rows, columns = linear_sum_assignment(-np.where(near >= SAME_FROM, near, 0.0))
    pairs = {
        int(row): known[column].pk
        for row, column in zip(rows, columns, strict=True)
        if near[row, column] >= SAME_FROM
    }
    roots = {one.pk: one.merged_into for one in known if one.merged_into is not None}
    apart = set()
    for row, pk in sorted(pairs.items()):
        root = roots.get(pk)
        if root is None:
            continue
        if root in pairs.values():
            apart.add(pk)
        elif any(one.pk == root for one in known):
            pairs[row] = root
    return Matches(
        tuple(pairs.get(row) for row in range(len(found))),
        _merged(near, known, taken=set(pairs.values()), roots=roots, pairs=pairs),
        frozenset(apart),
    )


def _merged(
    near: "np.ndarray[tuple[int, int], np.dtype[np.float64]]",
    known: Sequence[Known],
    *,
    taken: Collection[int],
    roots: Mapping[int, int],
    pairs: Mapping[int, int],
) -> dict[int, int]:
    """Issues without a cluster, by the position of the cluster of another issue that now has their chats."""
    merged = {}
    for column, issue in enumerate(known):
        row = int(near[:, column].argmax())
        alone = issue.pk not in taken and issue.pk not in roots and row in pairs
        if alone and near[row, column] >= MERGED_FROM:
            merged[issue.pk] = row
    return merged


def _similarity(one: Found, issue: Known) -> float:
    common = len(one.chats & issue.chats) / min(len(one.chats), len(issue.chats)) if issue.chats else 0.0
    return max(common, cosine(one.centroid, issue.centroid))
