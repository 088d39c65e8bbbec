"""Seeded random samples of chats without replacement, in an order that a database can compute, too."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import md5
from heapq import heappush, heappushpop, nsmallest

from labeling.sampling.core.allocation import SampleAllocation

ChatId = int | str
# The purpose of the judged sample's keys.
JUDGE = "judge"
# Above every key.
NO_LIMIT = "g"


@dataclass(frozen=True, slots=True)
class SampledChat:
    """A chat of the judged sample.

    Parameters
    ----------
    chat : its id. topic : its stratum.
    probability : that it is in the sample, n / N of its topic, in (0, 1].
    """

    chat: ChatId
    topic: str
    probability: float


def key_prefix(seed: int, purpose: str) -> str:
    """Text before the chat's id in its key; samples with other purposes or seeds are independent.

    >>> key_prefix(7, "judge")
    '7:judge:'
    """
    return f"{seed}:{purpose}:"


def sampling_key(chat: ChatId, *, prefix: str) -> str:
    """Place of a chat in the random order: 32 hexadecimal digits, sorted as text.

    In SQL: `md5(prefix || chat)`, in Django `MD5(Concat(Value(prefix), Cast("pk", TextField())))`. The n
    chats with the smallest keys are a simple random sample of n. MD5 is the one hash that PostgreSQL has
    without an extension. It spreads the chats and keeps no secret: keep the seed from those who write chats.

    >>> sampling_key(12, prefix=key_prefix(7, "judge"))
    '138767f43c87ef1b3dc4765d867d6bf6'
    """
    return md5(f"{prefix}{chat}".encode(), usedforsecurity=False).hexdigest()


def sample_chats(
    chats: Iterable[tuple[ChatId, str]], allocation: SampleAllocation, *, seed: int
) -> list[SampledChat]:
    """Sample the chats of a frame: of each topic those with the smallest keys.

    Parameters
    ----------
    chats : (id, topic) of the whole frame in any order; read once, with memory for the sample only.
    allocation : of this frame.
    seed : the same seed and ids give the same sample.

    Returns
    -------
    list of SampledChat : sorted by key. A run that stops early has then judged a random part of each topic.

    Raises
    ------
    ValueError : a topic has other than its allocated size (its probabilities would be wrong), or a sampled
        chat is listed twice.

    Notes
    -----
    Random order by permanent numbers: Ohlsson (1995), Coordination of samples using permanent random numbers,
    in Business Survey Methods; Cochran (1977), Sampling Techniques, chapter 5.

    Examples
    --------
    >>> from labeling.sampling.core.allocation import AllocationRule, TopicStratum, allocate
    >>> half = allocate([TopicStratum("refund", 4)], 2, rule=AllocationRule.PROPORTIONAL)
    >>> [(one.chat, one.probability) for one in sample_chats([(1, "refund"), (2, "refund"), (3, "refund"),
    ...     (4, "refund")], half, seed=7)]
    [(2, 0.5), (1, 0.5)]
    """
    prefix = key_prefix(seed, JUDGE)
    wanted = {stratum.key: stratum.n for stratum in allocation.strata}
    seen = dict.fromkeys(wanted, 0)
    smallest: dict[str, list[tuple[int, ChatId]]] = {key: [] for key in wanted}  # heaps, largest key first
    for chat, topic in chats:
        seen[topic] = seen.get(topic, 0) + 1
        if n := wanted.get(topic, 0):
            entry = (-int(sampling_key(chat, prefix=prefix), 16), chat)
            (heappush if len(smallest[topic]) < n else heappushpop)(smallest[topic], entry)
    _check_sizes(seen, {stratum.key: stratum.size for stratum in allocation.strata})
    return _in_order(
        ((-place, chat, topic) for topic, heap in smallest.items() for place, chat in heap), allocation
    )


def key_limit(n: int, size: int) -> str:
    """Limit below which at least `n` of `size` random keys lie, but for one time in a billion.

    A database that returns only keys below the limit of their topic returns little more than the sample. The
    limits are powers of two, so that topics share them. `NO_LIMIT` if it needs all keys.

    >>> key_limit(500, 1_000_000), key_limit(4, 5), key_limit(0, 5)
    ('0040000000000000', 'g', '')
    """
    if not n:
        return ""
    fraction = (n + 6 * math.sqrt(n) + 12) / size
    if fraction > 0.5:
        return NO_LIMIT
    return f"{2 ** (64 - math.floor(-math.log2(fraction))):016x}"


def sample_keyed(
    keyed: Iterable[tuple[str, ChatId, str]], allocation: SampleAllocation
) -> list[SampledChat] | None:
    """Sample the chats with the smallest keys, from (key, id, topic) of those below the limits.

    Returns the sample as `sample_chats` does from the whole frame; None if a topic has fewer chats below its
    limit than it needs.

    >>> from labeling.sampling.core.allocation import AllocationRule, TopicStratum, allocate
    >>> half = allocate([TopicStratum("refund", 4)], 2, rule=AllocationRule.PROPORTIONAL)
    >>> prefix = key_prefix(7, "judge")
    >>> keyed = [(sampling_key(chat, prefix=prefix), chat, "refund") for chat in (1, 2, 3)]
    >>> [one.chat for one in sample_keyed(keyed, half) or []], sample_keyed(keyed[:1], half)
    ([2, 1], None)
    """
    wanted = {stratum.key: stratum.n for stratum in allocation.strata}
    by_topic: dict[str, list[tuple[int, ChatId]]] = {key: [] for key in wanted}
    for key, chat, topic in keyed:
        by_topic[topic].append((int(key, 16), chat))
    if any(len(rows) < wanted[topic] for topic, rows in by_topic.items()):
        return None
    return _in_order(
        (
            (place, chat, topic)
            for topic, rows in by_topic.items()
            for place, chat in nsmallest(wanted[topic], rows)
        ),
        allocation,
    )


def _in_order(sampled: Iterable[tuple[int, ChatId, str]], allocation: SampleAllocation) -> list[SampledChat]:
    """The chats by key, with the probability of their topic."""
    probabilities = {stratum.key: stratum.probability for stratum in allocation.strata}
    ordered = sorted(sampled, key=lambda one: one[0])
    if len({place for place, _, _ in ordered}) < len(ordered):
        raise ValueError("a chat is listed twice in the sampling frame")
    return [SampledChat(chat, topic, probabilities[topic]) for _, chat, topic in ordered]


def _check_sizes(seen: dict[str, int], sizes: dict[str, int]) -> None:
    for topic, count in seen.items():
        if count != sizes.get(topic, 0):
            raise ValueError(
                f"topic {topic} has {count:,} chats, but the sample was allocated for {sizes.get(topic, 0):,}"
            )
