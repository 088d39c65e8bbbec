"""Splits by proportions: stable for each chat, and the same for chats that belong together."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.problems import InputProblem, shown
from labeling.chats.core.transcript import SPLITS

NEAR_BITS = 3
_BLOCKS = NEAR_BITS + 1  # with d differing bits and d + 1 blocks, one block is equal
_BLOCK_BITS = 64 // _BLOCKS
# A near-duplicate of a holdout chat is always holdout.
_STRICTEST_FIRST = ("holdout", "dev", "train")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chat that needs a split, or has one (`split`) that its near-duplicates and its cluster follow."""

    external_id: str
    content_hash: str
    near_hash: int | None
    split: str = ""
    cluster: str = ""


def proportions_of(text: str) -> dict[str, float]:
    """
    Parse the shares of the splits; they add up to 1.

    Parameters
    ----------
    text : "train=20,dev=40,holdout=40", or one name for everything; any total is scaled to 1.

    Raises
    ------
    InputProblem
        an unknown or repeated name, a share below 0, nothing above 0.

    Examples
    --------
    >>> proportions_of("train=1,dev=3")
    {'train': 0.25, 'dev': 0.75}
    >>> proportions_of("holdout")
    {'holdout': 1.0}
    """
    if "=" not in text:
        text = f"{text}=1"
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if name not in SPLITS:
            raise InputProblem(f"--split: {shown(name)} is not one of {', '.join(SPLITS)}")
        if name in shares:
            raise InputProblem(f"--split: {name} appears twice")
        shares[name] = _share(name, number)
    total = sum(shares.values())
    if not total > 0:
        raise InputProblem("--split: the shares add up to 0")
    return {name: share / total for name, share in shares.items()}


def _share(name: str, number: str) -> float:
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e9:
        raise InputProblem(f"--split: {name} needs a number from 0 up, not {shown(number)}")
    return share


def splits_of(candidates: Sequence[Candidate], proportions: Mapping[str, float]) -> dict[str, str]:
    """
    Assign a split to each candidate without one; return splits by external id.

    A group of near-duplicates and chats of one cluster gets one split: that of a member that has one (holdout
    before dev before train), else by the hash of the group's smallest id. So neither the order of a file nor
    a later file changes earlier splits.

    Examples
    --------
    >>> chats = [Candidate("a", "x", None, "holdout"), Candidate("b", "x", None), Candidate("c", "y", None)]
    >>> splits_of(chats, {"train": 1.0})
    {'b': 'holdout', 'c': 'train'}
    """
    result = {}
    for group in related_chats(candidates):
        split = _split_of_group(group, proportions)
        result.update({chat.external_id: split for chat in group if not chat.split})
    return result


def _split_of_group(group: Sequence[Candidate], proportions: Mapping[str, float]) -> str:
    splits = {chat.split for chat in group}
    for split in _STRICTEST_FIRST:
        if split in splits:
            return split
    return split_of(min(chat.external_id for chat in group), proportions)


def split_of(external_id: str, proportions: Mapping[str, float]) -> str:
    """
    Return the split that the hash of an id falls into.

    Examples
    --------
    >>> split_of("chat-1", {"train": 0.2, "dev": 0.4, "holdout": 0.4}) in SPLITS
    True
    """
    place = int.from_bytes(hashlib.sha256(external_id.encode()).digest()[:8]) / 2**64
    for name, share in proportions.items():
        place -= share
        if place < 0:
            return name
    return max(proportions, key=lambda name: proportions[name])  # rounding error


def related_chats(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """
    Group chats of one cluster, with the same content, or with at most three differing bits of the near hash.

    Groups are in the order of their first chat. Similarity is transitive: a ~ b and b ~ c puts all three
    together. Only chats that share a quarter of the hash are compared, so that different chats cost little.

    Examples
    --------
    >>> chats = [Candidate("a", "x", 0), Candidate("b", "y", 7), Candidate("c", "z", 15)]
    >>> [[chat.external_id for chat in group] for group in related_chats(chats)]
    [['a', 'b', 'c']]
    """
    parents = list(range(len(candidates)))
    by_content: dict[str, int] = {}
    by_cluster: dict[str, int] = {}
    by_hash: dict[int, int] = {}
    for index, chat in enumerate(candidates):
        _join(parents, by_content.setdefault(chat.content_hash, index), index)
        if chat.cluster:
            _join(parents, by_cluster.setdefault(chat.cluster, index), index)
        if chat.near_hash is not None:
            _join(parents, by_hash.setdefault(chat.near_hash, index), index)
    _join_near(parents, by_hash)
    groups: defaultdict[int, list[Candidate]] = defaultdict(list)
    for index, chat in enumerate(candidates):
        groups[_root(parents, index)].append(chat)
    return list(groups.values())


def has_near(near_hash: int, others: npt.NDArray[np.int64]) -> bool:
    """
    Whether one of `others` differs from a near hash in at most three bits.

    Examples
    --------
    >>> has_near(7, np.array([0, 64])), has_near(15, np.array([0, 64]))
    (True, False)
    """
    if not others.size:
        return False
    distance = np.bitwise_count((others ^ np.int64(near_hash)).view(np.uint64))
    return bool(distance.min() <= NEAR_BITS)


def _join_near(parents: list[int], by_hash: Mapping[int, int]) -> None:
    for block in range(_BLOCKS):
        for bucket in _buckets(by_hash, block):
            for value, first in zip(bucket, _components(bucket), strict=True):
                _join(parents, by_hash[bucket[first]], by_hash[value])


def _components(hashes: Sequence[int]) -> Iterable[int]:
    """Return for each hash the index of the first one in its component; compares all pairs as arrays."""
    values = np.array(hashes, np.int64)
    component = np.arange(len(values))
    for place in range(1, len(values)):
        distance = np.bitwise_count((values[:place] ^ values[place]).view(np.uint64))
        near = component[:place][distance <= NEAR_BITS]
        if near.size:
            component[place] = first = near.min()
            if near.max() != first:
                component[np.isin(component, near)] = first
    return component.tolist()


def _buckets(hashes: Iterable[int], block: int) -> Iterable[list[int]]:
    """Group the hashes that agree in this block of bits."""
    buckets: defaultdict[int, list[int]] = defaultdict(list)
    for value in hashes:
        buckets[(value >> (block * _BLOCK_BITS)) & (2**_BLOCK_BITS - 1)].append(value)
    return buckets.values()


def _root(parents: list[int], index: int) -> int:
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def _join(parents: list[int], left: int, right: int) -> None:
    left, right = _root(parents, left), _root(parents, right)
    parents[max(left, right)] = min(left, right)
