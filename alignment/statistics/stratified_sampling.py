"""Stratified random samples of chats for labelling, by verdict and topic, with inclusion probabilities."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from labeling.chats.core.allocation import AllocationError, AllocationRule, allocation
from labeling.chats.core.splits import Candidate, related_chats
from labeling.jobs.core import seeded_random


@dataclass(frozen=True, slots=True)
class Stratum:
    """Chats of one topic with a verdict of False (`suspect`) or without; `chats` are ids."""

    suspect: bool
    topic: str
    chats: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of chats."""
        return len(self.chats)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Number of chats to sample from a stratum."""

    stratum: Stratum
    n: int

    @property
    def probability(self) -> float:
        """Inclusion probability of each of its chats, n / N; 0 for an empty stratum."""
        return self.n / self.stratum.size if self.stratum.size else 0.0


@dataclass(frozen=True, slots=True)
class SampledChat:
    """A sampled chat; `stratum` is a neutral code, whose meaning is stored with the chat set."""

    chat: int
    stratum: str
    probability: float


def near_duplicate_groups(candidates: Sequence[Candidate]) -> list[list[str]]:
    """Groups of two or more near-duplicates, as external ids, in the order of the candidates.

    >>> names = {"a": "x", "b": "x", "c": "y"}
    >>> near_duplicate_groups([Candidate(chat, text, None) for chat, text in names.items()])
    [['a', 'b']]
    """
    groups = related_chats(candidates)
    return [[one.external_id for one in group] for group in groups if len(group) > 1]


def excluded_duplicates(groups: Iterable[Sequence[int]], *, taken: Collection[int]) -> set[int]:
    """Chats to exclude from a sample: of each group all but the first, or all if one is `taken`.

    `groups` and `taken` hold chat ids.

    >>> excluded_duplicates([[1, 2, 3], [4, 5]], taken={5})
    {2, 3, 4, 5}
    """
    known = set(taken)
    return {chat for group in groups for chat in (group if known.intersection(group) else group[1:])}


def strata_of(chats: Iterable[tuple[int, str]], *, suspect: Collection[int]) -> list[Stratum]:
    """Group (chat id, topic) pairs into strata: suspect ones first, then by topic."""
    groups: dict[tuple[bool, str], list[int]] = {}
    for chat, topic in chats:
        groups.setdefault((chat in suspect, topic), []).append(chat)
    ordered = sorted(groups.items(), key=lambda item: (not item[0][0], item[0][1]))
    return [Stratum(kind, topic, tuple(chats)) for (kind, topic), chats in ordered]


def allocate_sample(
    strata: Sequence[Stratum], *, chats: int, suspect: int, rule: AllocationRule, minimum: int = 0
) -> list[Allocation]:
    """Allocate a sample to strata: `suspect` of the `chats` from those with a verdict of False.

    Parameters
    ----------
    strata : from `strata_of`.
    chats, suspect : number of chats in all, and of those with a verdict of False.
    rule : how topics share the chats of each kind.
    minimum : chats of each topic and kind, or all there are.

    Returns
    -------
    list of Share : one per stratum, in the same order.

    Raises
    ------
    AllocationError : more chats than there are, or fewer than the minimum of all topics.

    Notes
    -----
    Neyman (1934), J R Stat Soc 97:558; Cochran (1977), Sampling Techniques, chapter 5.
    """
    numbers: dict[Stratum, int] = {}
    for kind, n in ((True, suspect), (False, chats - suspect)):
        own = [stratum for stratum in strata if stratum.suspect is kind]
        numbers |= zip(own, _allocate(own, n, kind=kind, rule=rule, minimum=minimum), strict=True)
    return [Allocation(stratum, numbers[stratum]) for stratum in strata]


def _allocate(
    strata: Sequence[Stratum], n: int, *, kind: bool, rule: AllocationRule, minimum: int
) -> list[int]:
    sizes = [stratum.size for stratum in strata]
    what = "with a verdict of False" if kind else "without a verdict of False"
    if n > sum(sizes):
        raise AllocationError(f"{n:,} chats {what} requested, but there are only {sum(sizes):,}")
    if n == 0:
        return [0] * len(sizes)  # the minimum does not apply
    least = sum(min(size, minimum) for size in sizes)
    if n < least:
        raise AllocationError(
            f"{minimum:,} of each topic are {least:,} chats {what}, more than the {n:,} requested"
        )
    return allocation(sizes, n, rule=rule, minimum=minimum)


def sample_chats(shares: Sequence[Allocation], *, seed: int) -> list[SampledChat]:
    """Sample chats without replacement within each stratum, in an order that does not disclose the stratum.

    Each chat of a stratum has the same inclusion probability, n / N. Equal seeds give the same sample.
    Cochran (1977), Sampling Techniques, chapter 5.
    """
    codes = stratum_codes(shares, seed=seed)
    sample = [
        SampledChat(chat, codes[share.stratum], share.probability)
        for share in shares
        for chat in sorted(share.stratum.chats, key=lambda chat: seeded_random(seed, "drawn", chat))[
            : share.n
        ]
    ]
    return sorted(sample, key=lambda one: seeded_random(seed, "place", one.chat))


def effective_size(probabilities: Iterable[float]) -> float:
    """Kish's effective size: the size of an equal-probability sample with at least the same information.

    Parameters
    ----------
    probabilities : inclusion probabilities of the sampled chats, each in (0, 1].

    Returns
    -------
    float : (sum of w)^2 / sum of w^2 with weights w = 1 / probability; 0 without chats.

    Notes
    -----
    Kish (1965), Survey Sampling, section 11.7.

    Examples
    --------
    >>> round(effective_size([0.1] * 20), 6), round(effective_size([0.25] * 25 + [0.014] * 7), 1)
    (20.0, 10.0)
    """
    weights = [1 / chance for chance in probabilities]
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0


def stratum_codes(shares: Sequence[Allocation], *, seed: int) -> Mapping[Stratum, str]:
    """Codes `s1`, `s2`, … by stratum, in random order by `seed`: a code discloses no verdict or topic."""
    strata = [share.stratum for share in shares]
    shuffled = sorted(strata, key=lambda one: seeded_random(seed, "stratum", one.suspect, one.topic))
    return {stratum: f"s{number}" for number, stratum in enumerate(shuffled, 1)}
