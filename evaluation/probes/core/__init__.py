"""Attacks on the judge and harmless changes of a chat: what moves a verdict that should stand?"""

from evaluation.probes.core.attacks import DIRECTIONS, SPEAKERS, Attack, attacks, with_attack
from evaluation.probes.core.payloads import KINDS, Direction
from evaluation.probes.core.perturbations import lengthen, paraphrase, with_article
from evaluation.probes.core.tally import GATE, PERTURBATIONS, Perturbation, Trial, probe_report, rate

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
    "with_attack",
    "attacks",
    "paraphrase",
    "probe_report",
    "rate",
    "with_article",
    "lengthen",
]
