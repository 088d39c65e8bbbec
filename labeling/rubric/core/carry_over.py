"""Answers on one chat that carry over from old criteria to the question that replaces them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labeling.consensus.core.votes import ConsensusState, Decision, Votes, consensus_of


@dataclass(frozen=True, slots=True)
class OldAnswers:
    """The answers to one old criterion on one chat: labels by rater, and the current adjudication."""

    labels: Mapping[int, bool | None]
    decision: Decision | None = None

    @property
    def state(self) -> ConsensusState | None:
        """The consensus; None without labels and adjudication."""
        return _state(self.labels.values(), self.decision)


@dataclass(frozen=True, slots=True)
class ChatCarryOver:
    """
    The labels on one chat that carry over.

    `sources` maps each rater to the index of the old criterion that their label comes from. `differing` is
    the number of raters who answered the old questions differently.
    """

    sources: Mapping[int, int]
    differing: int = 0


def chat_carry_over(olds: Sequence[OldAnswers]) -> ChatCarryOver | None:
    """
    Return the labels of one chat that carry over; None if the chat is excluded.

    A chat is excluded where two old consensuses are different answers, or where the majority of the labels
    that would carry over is another answer than the old consensus. An unresolved consensus is no answer, so
    it differs from none. On a chat that is not excluded, every rater's label carries over: the one to the
    first of the old questions that this rater answered.

    Parameters
    ----------
    olds : the old criteria whose labels carry over, in the rubric's order.

    Notes
    -----
    Both rules keep agreement between raters from being overstated. A rater's label must not depend on whether
    it equals the same rater's other label: of raters with accuracy p, those who answer twice alike are right
    with p² / (p² + (1 - p)²). And a chat must not need a majority for every question: of two raters, only
    chats on which both agree would be left.

    Examples
    --------
    >>> kind = OldAnswers({1: True, 2: True, 3: False})
    >>> polite = OldAnswers({1: False, 2: True, 3: True})
    >>> chat_carry_over([kind, polite])
    ChatCarryOver(sources={1: 0, 2: 0, 3: 0}, differing=2)
    >>> chat_carry_over([kind, OldAnswers({1: False, 2: False, 3: True})]) is None
    True
    """
    sources: dict[int, int] = {}
    for n, old in enumerate(olds):
        for rater in old.labels:
            sources.setdefault(rater, n)
    labels = [olds[n].labels[rater] for rater, n in sources.items()]
    states = {old.state for old in olds}
    if all(old.decision is None for old in olds):
        states.add(_state(labels, None))
    if len(states - {None, "unresolved"}) > 1:
        return None
    return ChatCarryOver(sources, sum(_differ(olds, rater) for rater in sources))


def _state(labels: Iterable[bool | None], decision: Decision | None) -> ConsensusState | None:
    counts = Counter(labels)
    result = consensus_of(Votes(counts[True], counts[False], counts[None]), decision)
    return result.state if result else None


def _differ(olds: Sequence[OldAnswers], rater: int) -> bool:
    return len({old.labels[rater] for old in olds if rater in old.labels}) > 1
