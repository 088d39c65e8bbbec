"""Chats with a known truth, and the raters who label them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Clusters, Codes, HumanCode
from alignment.statistics.label_needs import Decision, LabelCounts, needs
from labeling.consensus.core.votes import Votes, consensus_of

MOST = 2000  # chats that a plan can choose from
TOPICS = 4
INJECTED = 0.3
NO_LABEL = -1
SPLITS = ("train", "dev", "holdout", "holdout")
STATES = {
    "true": HumanCode.TRUE,
    "false": HumanCode.FALSE,
    "na": HumanCode.NA,
    "unresolved": HumanCode.UNRESOLVED,
}

Generator = np.random.Generator
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# From the truth (criteria, chats) and each chat's hardness: labels (raters, criteria, chats), -1 for none.
Panel = Callable[[Codes, Floats, Generator], Codes]


@dataclass(frozen=True, slots=True)
class World:
    """
    What is planted before a judge answers.

    Parameters
    ----------
    name, panel : of the raters.
    true : share of chats that are True, by criterion.
    chats : their number, or the decision for which the label plan has to ask for no more labels.
    dialogue : chats that belong together; they have one truth.
    """

    name: str
    panel: Panel
    true: tuple[float, ...] = (0.7,)
    chats: int | Decision = 400
    dialogue: int = 1


@dataclass(frozen=True, slots=True)
class Chats:
    """
    One simulated set of chats.

    Parameters
    ----------
    share : planted share of True by criterion, shape (criteria, 1).
    truth : answer of a perfect panel, HumanCode TRUE or FALSE, shape (criteria, chats).
    hard : hardness in [0, 1], shape (chats,), as are `topic`, `split`, `injected` and `dialogue`.
    labels : shape (raters, criteria, chats): True 0, False 1, -1 for none.
    counts : labels by answer, shape (criteria, chats, 3).
    human : HumanCode of the consensus, shape (criteria, chats).
    """

    share: Floats
    truth: Codes
    hard: Floats
    topic: Ints
    split: NDArray[np.str_]
    injected: Bools
    dialogue: Ints
    labels: Codes
    counts: Ints
    human: Codes

    def __len__(self) -> int:
        return len(self.hard)

    @property
    def clusters(self) -> Clusters:
        """Dialogues as the product numbers clusters; None if each chat is alone."""
        return self.dialogue if len(np.unique(self.dialogue)) < len(self) else None

    def among(self, chosen: Any) -> "Chats":
        """Return the chosen chats alone: a slice or a mask of shape (chats,)."""
        return replace(
            self,
            truth=self.truth[:, chosen],
            hard=self.hard[chosen],
            topic=self.topic[chosen],
            split=self.split[chosen],
            injected=self.injected[chosen],
            dialogue=self.dialogue[chosen],
            labels=self.labels[:, :, chosen],
            counts=self.counts[:, chosen],
            human=self.human[:, chosen],
        )


def simulated(world: World, draw: Generator) -> Chats:
    """Return as many chats as the world has or its plan needs, with truth, labels and consensus."""
    n = MOST if isinstance(world.chats, Decision) else world.chats
    share = np.array(world.true)[:, np.newaxis]
    dialogue = np.arange(n) // world.dialogue
    dialogues = int(dialogue[-1]) + 1
    truth = np.where(draw.random((len(share), dialogues)) < share, HumanCode.TRUE, HumanCode.FALSE)
    truth = truth[:, dialogue].astype(np.int8)
    hard = draw.random(dialogues)[dialogue]
    labels = world.panel(truth, hard, draw)
    counts = np.stack([(labels == HumanCode.TRUE).sum(0), (labels == HumanCode.FALSE).sum(0)], axis=-1)
    counts = np.concatenate([counts, np.zeros((*counts.shape[:2], 1), dtype=np.int64)], axis=-1)
    chats = Chats(
        share=share,
        truth=truth,
        hard=hard,
        topic=draw.integers(TOPICS, size=n),
        split=draw.choice(SPLITS, size=n),
        injected=draw.random(n) < INJECTED,
        dialogue=dialogue,
        labels=labels,
        counts=counts,
        human=_consensus(counts),
    )
    if isinstance(world.chats, Decision):
        return chats.among(slice(max(_planned(row, world.chats) for row in chats.human)))
    return chats


def enough(human: Codes, decision: Decision) -> bool:
    """Whether the label plan asks for no more labels of one criterion; `human` of shape (chats,)."""
    return _missing(human, decision) == 0


def _missing(human: Codes, decision: Decision) -> int:
    counts = LabelCounts(
        true=int((human == HumanCode.TRUE).sum()), false=int((human == HumanCode.FALSE).sum())
    )
    return next(need for need in needs(counts) if need.decision is decision).missing_chats


def _planned(human: Codes, decision: Decision) -> int:
    """Label as many more chats as the plan says, again and again, until it has enough."""
    n = 0
    while more := _missing(human[:n], decision):
        if n == len(human):
            raise ValueError(f"{n} chats are too few for {decision}")
        n = min(n + more, len(human))
    return n


def _consensus(counts: Ints) -> Codes:
    """Decide each different count of labels once."""
    true, false = counts[..., 0], counts[..., 1]
    every = int(counts.max(initial=0)) + 1
    codes = np.array([[_state(n, m) for m in range(every)] for n in range(every)], dtype=np.int8)
    decided: Codes = codes[true, false]
    return decided


@cache
def _state(true: int, false: int) -> HumanCode:
    result = consensus_of(Votes(true, false))
    return HumanCode.UNLABELLED if result is None else STATES[result.state]


# ---------- raters ----------


def flipped(answers: Codes, chance: float | Floats, draw: Generator) -> Codes:
    """Return True and False answers, each turned round with this chance."""
    turned: Codes = np.where(draw.random(answers.shape) < chance, 1 - answers, answers).astype(np.int8)
    return turned


def raters(*skills: float) -> Panel:
    """Raters who err independently of each other, each with the chance of being right."""
    return lambda truth, _, draw: np.stack([flipped(truth, 1 - skill, draw) for skill in skills])


def copies(skill: float, names: int, *, slips: float = 0.0) -> Panel:
    """Several names and one opinion: the answers of one rater, apart from slips of the pen."""

    def labels(truth: Codes, _: Floats, draw: Generator) -> Codes:
        first = flipped(truth, 1 - skill, draw)
        return np.stack([flipped(first, slips, draw) for _ in range(names)])

    return labels


def some_double(main: float, others: tuple[float, ...], share: float) -> Panel:
    """One rater labels every chat, the others a share of them."""

    def labels(truth: Codes, _: Floats, draw: Generator) -> Codes:
        rows = raters(main, *others)(truth, _, draw)
        rows[1:, :, draw.random(truth.shape[1]) >= share] = NO_LABEL
        return rows

    return labels


def disputing(share: float) -> Panel:
    """Two raters who oppose each other on the hardest chats, this share of all, and agree on the others."""

    def labels(truth: Codes, hard: Floats, draw: Generator) -> Codes:
        first = np.where(hard >= 1 - share, flipped(truth, 0.5, draw), truth).astype(np.int8)
        return np.stack([first, np.where(hard >= 1 - share, 1 - first, first).astype(np.int8)])

    return labels
