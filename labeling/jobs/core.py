"""Order of the chats in a labelling job, reproducible from the job's seed."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from math import floor

_BYTES = 8


def seeded_random(seed: int, *parts: object) -> float:
    """
    Return a pseudo-random number in [0, 1) that depends only on the seed and the parts.

    Examples
    --------
    >>> seeded_random(1, "chat", 7) == seeded_random(1, "chat", 7), 0 <= seeded_random(2, "chat", 7) < 1
    (True, True)
    """
    text = ":".join(str(part) for part in (seed, *parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest()) / float(256**_BYTES)


def by_topic(chats: Sequence[tuple[int, int]], *, seed: int) -> list[int]:
    """
    Order chats by turns of topics: one of each topic, then the next of each.

    Unfinished work then covers every topic.

    `chats` are (chat, topic) in the set's order, which each topic keeps; the seed orders the topics.

    Examples
    --------
    >>> by_topic([(1, 8), (2, 8), (3, 8), (4, 9)], seed=2)
    [1, 4, 2, 3]
    """
    counts: defaultdict[int, int] = defaultdict(int)
    turns: list[tuple[int, float, int]] = []
    for chat, topic in chats:
        turns.append((counts[topic], seeded_random(seed, "topic", topic), chat))
        counts[topic] += 1
    return [chat for *_, chat in sorted(turns, key=lambda turn: turn[:2])]


def shuffled(chats: Sequence[int], *, seed: int) -> list[int]:
    """
    Shuffle chats by the seed.

    Examples
    --------
    >>> sorted(shuffled([1, 2, 3], seed=4)), shuffled([1, 2, 3], seed=4) == shuffled([3, 1, 2], seed=4)
    ([1, 2, 3], True)
    """
    return sorted(chats, key=lambda chat: (seeded_random(seed, "chat", chat), chat))


def shared_out(chats: Sequence[int], *, share: float, seed: int) -> set[int]:
    """
    Sample a share of the chats, rounded to whole chats.

    Examples
    --------
    >>> len(shared_out(range(10), share=0.25, seed=1)), len(shared_out(range(10), share=1, seed=1))
    (2, 10)
    """
    ordered = sorted(chats, key=lambda chat: (seeded_random(seed, "share", chat), chat))
    return set(ordered[: round(share * len(ordered))])


def gold_place(nth: int, *, rate: float, seed: int, rater: int) -> int:
    """
    Return the number of chats before a rater's nth gold chat (from 0): one in each stretch of 1/rate chats.

    The position in the stretch depends on seed and rater, so that raters cannot predict it.

    Examples
    --------
    >>> [0 <= gold_place(n, rate=0.1, seed=1, rater=5) - 10 * n < 10 for n in range(4)]
    [True, True, True, True]
    """
    return floor((nth + seeded_random(seed, "gold", rater, nth)) / rate)


def gold_ahead(
    *, taken: int, gold: int, left: int, available: int, rate: float, seed: int, rater: int
) -> int:
    """
    Return how many gold chats a rater still gets among the `left` other chats.

    The rater got `taken` chats, `gold` of them gold; `available` gold chats are new to them.
    A gold chat never comes last.

    Examples
    --------
    >>> gold_ahead(taken=0, gold=0, left=95, available=9, rate=0.1, seed=1, rater=5)
    9
    >>> gold_ahead(taken=10, gold=1, left=0, available=9, rate=0.1, seed=1, rater=5)
    0
    """
    count = 0
    while count < available:
        before = max(gold_place(gold + count, rate=rate, seed=seed, rater=rater) - taken, 0)
        if before >= left:
            break
        left -= before
        taken += before + 1
        count += 1
    return count
