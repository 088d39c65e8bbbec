"""Attacks on the judge and harmless changes of a chat: what moves a verdict that should stand?"""

from evaluation.probes.core.attacks import DIRECTIONS, SPEAKERS, Attack, attacked, attacks
from evaluation.probes.core.harmless import paraphrased, with_article, wordier
from evaluation.probes.core.payloads import KINDS, Direction
from evaluation.probes.core.tally import GATE, PLAIN_PROBES, Plain, Trial, probe_report, rate

__all__ = [
    "DIRECTIONS",
    "GATE",
    "KINDS",
    "PLAIN_PROBES",
    "SPEAKERS",
    "Attack",
    "Direction",
    "Plain",
    "Trial",
    "attacked",
    "attacks",
    "paraphrased",
    "probe_report",
    "rate",
    "with_article",
    "wordier",
]
