"""Attacks on the judge and harmless changes of a chat: what changes a verdict that should not change?"""

from evaluation.probes.core.attacks import DIRECTIONS, SPEAKERS, Attack, attacks, with_attack
from evaluation.probes.core.payloads import KINDS, Direction
from evaluation.probes.core.perturbations import lengthen, paraphrase, with_article
from evaluation.probes.core.tally import (
    GATE,
    PERTURBATIONS,
    Perturbation,
    Trial,
    difference,
    probe_report,
    rate,
)

__all__ = [
    "DIRECTIONS",
    "GATE",
    "KINDS",
    "PERTURBATIONS",
    "SPEAKERS",
    "Attack",
    "Direction",
    "Perturbation",
    "Trial",
    "attacks",
    "difference",
    "lengthen",
    "paraphrase",
    "probe_report",
    "rate",
    "with_article",
    "with_attack",
]
