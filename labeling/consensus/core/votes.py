"""The consensus of the raters' labels on (chat, criterion)."""

from dataclasses import dataclass
from typing import Literal

ConsensusState = Literal["true", "false", "na", "unresolved"]
ConsensusBy = Literal["majority", "adjudication"]


@dataclass(frozen=True, slots=True)
class Votes:
    """Numbers of labels by answer; null labels count as not applicable."""

    n_true: int = 0
    n_false: int = 0
    n_na: int = 0

    @property
    def total(self) -> int:
        """Number of labels, not applicable included."""
        return self.n_true + self.n_false + self.n_na


@dataclass(frozen=True, slots=True)
class Decision:
    """A lead's adjudication; None = not applicable."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class ConsensusResult:
    """The consensus and its source: majority or adjudication."""

    state: ConsensusState
    by: ConsensusBy


def state_of(value: bool | None) -> ConsensusState:
    """
    Return the consensus state of a single answer.

    Examples
    --------
    >>> state_of(True), state_of(False), state_of(None)
    ('true', 'false', 'na')
    """
    return "na" if value is None else "true" if value else "false"


def consensus_of(votes: Votes, decision: Decision | None = None) -> ConsensusResult | None:
    """
    Return the adjudication, else the strict majority of all labels, else unresolved.

    Not applicable counts as an answer.

    Parameters
    ----------
    votes : counts of the blind, submitted labels.
    decision : the current adjudication, if any; it wins even without labels.

    Returns
    -------
    None when there is neither a label nor an adjudication.

    Examples
    --------
    >>> consensus_of(Votes(n_true=2, n_false=1)).state
    'true'
    >>> consensus_of(Votes(n_true=2, n_false=1, n_na=1)).state
    'unresolved'
    """
    if decision is not None:
        return ConsensusResult(state_of(decision.value), "adjudication")
    if votes.total == 0:
        return None
    counts: list[tuple[ConsensusState, int]] = [
        ("true", votes.n_true),
        ("false", votes.n_false),
        ("na", votes.n_na),
    ]
    for state, count in counts:
        if 2 * count > votes.total:
            return ConsensusResult(state, "majority")
    return ConsensusResult("unresolved", "majority")
