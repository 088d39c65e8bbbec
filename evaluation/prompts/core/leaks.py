"""Finds passages of a prompt that occur word for word in chats used for measuring judges."""

import re
from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

SHINGLE = 8  # words; shorter runs coincide by chance
LONGEST_SHOWN = 120  # characters of a passage in a message

Shingles = npt.NDArray[np.uint64]

_WORD = re.compile(r"\w+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def shingles_of(texts: Iterable[str]) -> Shingles:
    """Return a number for every different run of eight words in the texts.

    Case and punctuation are ignored; no run spans two texts. The numbers are valid in this process only,
    because Python salts its hashes.

    Returns
    -------
    Sorted array of uint64.

    Examples
    --------
    >>> len(shingles_of(["One two three four five six seven eight nine", "eight nine ten"]))
    2
    """
    codes: list[int] = []
    places: list[int] = []
    for number, text in enumerate(texts):
        words = _WORD.findall(text.casefold())
        codes.extend(map(hash, words))
        places.extend([number] * len(words))
    inside = np.array(places, np.int32)
    runs = _runs(np.array(codes, np.int64).view(np.uint64))
    return np.unique(runs[inside[: len(runs)] == inside[SHINGLE - 1 :]])


def merge_shingles(parts: Iterable[Shingles]) -> Shingles:
    """Return the numbers of all parts as one sorted array; needs little more memory than the result.

    Examples
    --------
    >>> merge_shingles(np.array(part, np.uint64) for part in ([2, 5], [1])).tolist()
    [1, 2, 5]
    """
    grown = array("Q")
    for part in parts:
        grown.frombytes(part.view(np.uint8).data)
    numbers = np.frombuffer(grown, np.uint64)
    numbers.sort()
    return numbers


def leaked_passages(text: str, *, known: Shingles) -> tuple[str, ...]:
    """Return the passages of `text` whose runs of eight words are all known, as written there.

    Parameters
    ----------
    known : sorted, from `shingles_of`.

    Examples
    --------
    >>> known = shingles_of(["So: my parcel never came and nobody told me why."])
    >>> leaked_passages("Like “My parcel never came and nobody told me” here.", known=known)
    ('My parcel never came and nobody told me',)
    """
    words = list(_WORD.finditer(text))
    codes = np.array([hash(word[0].casefold()) for word in words], np.int64)
    hits = np.flatnonzero(_among(_runs(codes.view(np.uint64)), known))
    passages: list[tuple[int, int]] = []
    for first in hits.tolist():
        last = first + SHINGLE - 1
        if passages and first <= passages[-1][1] + 1:
            passages[-1] = (passages[-1][0], last)
        else:
            passages.append((first, last))
    return tuple(text[words[first].start() : words[last].end()] for first, last in passages)


def shorten(passage: str) -> str:
    """Return a passage in one line, without its middle if it is long."""
    line = " ".join(passage.split())
    half = LONGEST_SHOWN // 2
    return line if len(line) <= LONGEST_SHOWN else f"{line[:half].rstrip()} … {line[-half:].lstrip()}"


def _runs(codes: Shingles) -> Shingles:
    """Return one number per run of eight codes; arithmetic wraps at 64 bits."""
    count = max(len(codes) - SHINGLE + 1, 0)
    runs = np.zeros(count, np.uint64)
    for place in range(SHINGLE):
        runs = runs * _FACTOR + codes[place : place + count]
    return runs


def _among(runs: Shingles, known: Shingles) -> npt.NDArray[np.bool_]:
    """Return which of the runs are known; `known` is sorted."""
    if not known.size:
        return np.zeros(len(runs), np.bool_)
    places = np.searchsorted(known, runs)
    return np.equal(known[np.minimum(places, len(known) - 1)], runs)
