"""Chats drawn for labelling, at random within strata of verdict and topic, with their probabilities."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from labeling.chats.core.allocation import AllocationError, AllocationRule, allocation
from labeling.chats.core.splits import Candidate, near_duplicates
from labeling.jobs.core import draw


@dataclass(frozen=True, slots=True)
class Stratum:
    """Chats of one topic that the judge calls False (`suspect`), or does not; `chats` by id."""

    suspect: bool
    topic: str
    chats: tuple[int, ...]

    @property
    def size(self) -> int:
        """Chats in it."""
        return len(self.chats)


@dataclass(frozen=True, slots=True)
class Share:
    """How many chats a stratum gives."""

    stratum: Stratum
    n: int

    @property
    def probability(self) -> float:
        """The chance of each of its chats to be drawn."""
        return self.n / self.stratum.size if self.stratum.size else 0.0


@dataclass(frozen=True, slots=True)
class DrawnChat:
    """A chat of the draw; `stratum` is a code that tells nothing, kept with its meaning beside the set."""

    chat: int
    stratum: str
    probability: float


def alike(candidates: Sequence[Candidate]) -> list[list[str]]:
    """Groups of two near-duplicates or more, in their order; external ids.

    >>> alike([Candidate("a", "x", None), Candidate("b", "x", None), Candidate("c", "y", None)])
    [['a', 'b']]
    """
    groups = near_duplicates(candidates)
    return [[one.external_id for one in group] for group in groups if len(group) > 1]


def stood_for(groups: Iterable[Sequence[int]], *, taken: Collection[int]) -> set[int]:
    """Chats that are not drawn: of each group all but the first, and the first where one is `taken`.

    >>> stood_for([[1, 2, 3], [4, 5]], taken={5})
    {2, 3, 4, 5}
    """
    known = set(taken)
    return {chat for group in groups for chat in (group if known.intersection(group) else group[1:])}


def strata_of(chats: Iterable[tuple[int, str]], *, suspect: Collection[int]) -> list[Stratum]:
    """(chat, topic) in the set's order → strata: suspect ones first, topics by name."""
    found: dict[tuple[bool, str], list[int]] = {}
    for chat, topic in chats:
        found.setdefault((chat in suspect, topic), []).append(chat)
    ordered = sorted(found.items(), key=lambda item: (not item[0][0], item[0][1]))
    return [Stratum(kind, topic, tuple(chats)) for (kind, topic), chats in ordered]


def shared(
    strata: Sequence[Stratum], *, chats: int, suspect: int, rule: AllocationRule, minimum: int = 0
) -> list[Share]:
    """How many chats each stratum gives: `suspect` of the `chats` from those that the judge calls False.

    Within either kind the topics share by the rule, each with the minimum or all it has.

    Raises
    ------
    AllocationError : more than there are, or fewer than the minimum of all topics.
    """
    numbers: dict[Stratum, int] = {}
    for kind, n in ((True, suspect), (False, chats - suspect)):
        own = [stratum for stratum in strata if stratum.suspect is kind]
        numbers |= zip(own, _shared_out(own, n, kind=kind, rule=rule, minimum=minimum), strict=True)
    return [Share(stratum, numbers[stratum]) for stratum in strata]


def _shared_out(
    strata: Sequence[Stratum], n: int, *, kind: bool, rule: AllocationRule, minimum: int
) -> list[int]:
    sizes = [stratum.size for stratum in strata]
    what = "that the judge calls False" if kind else "that the judge does not call False"
    if n > sum(sizes):
        raise AllocationError(f"{n:,} chats {what} were asked for, and there are {sum(sizes):,}")
    if n == 0:
        return [0] * len(sizes)  # none of a kind: nor a minimum of it
    least = sum(min(size, minimum) for size in sizes)
    if n < least:
        raise AllocationError(f"{minimum:,} of each topic are {least:,} chats {what}, more than {n:,}")
    return allocation(sizes, n, rule=rule, minimum=minimum)


def drawn(shares: Sequence[Share], *, seed: int) -> list[DrawnChat]:
    """Draw without replacement within each stratum; in an order that tells nothing of the strata.

    Each chat of a stratum has the same chance, n / N. Equal seeds draw the same chats.
    """
    codes = stratum_codes(shares, seed=seed)
    found = [
        DrawnChat(chat, codes[share.stratum], share.probability)
        for share in shares
        for chat in sorted(share.stratum.chats, key=lambda chat: draw(seed, "drawn", chat))[: share.n]
    ]
    return sorted(found, key=lambda one: draw(seed, "place", one.chat))


def effective_size(probabilities: Iterable[float]) -> float:
    """How many chats drawn with equal chances so many with these probabilities are worth, at least.

    Parameters
    ----------
    probabilities : of the chats, each above 0.

    Returns
    -------
    float : (sum of w)^2 / sum of w^2 with the weight w = 1 / probability; 0 without chats.

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


def stratum_codes(shares: Sequence[Share], *, seed: int) -> Mapping[Stratum, str]:
    """`s1`, `s2`, … in an order of the seed's, so that the code itself says neither verdict nor topic."""
    strata = [share.stratum for share in shares]
    mixed = sorted(strata, key=lambda one: draw(seed, "stratum", one.suspect, one.topic))
    return {stratum: f"s{number}" for number, stratum in enumerate(mixed, 1)}
