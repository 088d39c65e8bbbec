"""The words of the product's core functions on a planted judge, counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from alignment.certificates.core.body import SPLITS, Use, use_of
from alignment.comparison.core.codes import Codes, CriterionData, CriterionSpec, HumanCode, ReportData
from alignment.judge_comparison.core import OVERALL, compare
from alignment.judge_comparison.core.tallies import CriterionAnswers
from alignment.regression.core import Gate, GatePolicy, PairedVerdicts, confirm, count_evidence, decide
from alignment.reports.core import build_report
from alignment.reports.core.cautions import CHANCE, INVERTED
from alignment.reports.core.label_problems import label_problem
from alignment.reports.core.status import StatusPolicy
from alignment.statistics.label_needs import Decision
from bench._redteam_judges import Judge
from bench._redteam_worlds import Chats, Generator, enough
from bench.gate import REPEATED
from labeling.consensus.core.dawid_skene import TooFewError, dawid_skene

TIER = "simple"
PLANTED, OTHER = 1, 2  # runs of a league

# Kinds of caution, each by a phrase that no other caution has.
CAUTIONS: Mapping[str, str] = {
    "inverted": INVERTED,
    "one answer": "the judge answered",
    "missing verdicts": "gave no True or False",
    "adjudicate": "adjudicate",
    "agreement unknown": "human agreement unknown",
    "same labels": "raters gave the same label",
    "lower elsewhere": "expect lower values elsewhere",
}


class Subject(StrEnum):
    """Subjects on which the product gives a word."""

    STATUS = "status"
    OVERALL = "overall"
    LEAGUE = "league"
    GATE = "gate"
    CERTIFICATE = "certificate"
    PLAN = "label plan"
    CONSENSUS = "consensus"
    DAWID_SKENE = "Dawid-Skene"
    CAUTION = "caution"


@dataclass
class Given:
    """How often each word was given, and out of how many; `planned`: where the plan has enough labels."""

    words: Counter[str] = field(default_factory=Counter)
    of: int = 0
    planned: Counter[str] = field(default_factory=Counter)
    planned_of: int = 0

    def add(self, other: "Given") -> None:
        """Count another simulated set."""
        self.words.update(other.words)
        self.of += other.of
        self.planned.update(other.planned)
        self.planned_of += other.planned_of


@dataclass(frozen=True)
class Trial:
    """
    One judge on one simulated set of chats.

    Parameters
    ----------
    chats : those that the product sees.
    judge, second, other : JudgeCode of shape (criteria, chats): the planted judge, the same asked again, and
        the judge it is compared with, in the gate the champion.
    split : what the report is limited to; '' for all.
    seed : of the bootstraps.
    """

    chats: Chats
    judge: Codes
    second: Codes
    other: Codes
    split: str
    seed: int

    @cached_property
    def data(self) -> ReportData:
        """What a report is built from."""
        chats = self.chats
        labelled = [(rows >= 0).any(axis=1) for rows in chats.labels.swapaxes(0, 1)]
        criteria = tuple(
            CriterionData(
                spec=CriterionSpec(f"c{n}", "all", "All", TIER, passes_when=True),
                human=chats.human[n],
                judge=self.judge[n],
                counts=chats.counts[n],
                raters=int(labelled[n].sum()),
            )
            for n in range(len(self.judge))
        )
        return ReportData([str(n) for n in range(len(chats))], criteria, clusters=chats.clusters)

    @cached_property
    def problems(self) -> list[str]:
        """By criterion, why its labels cannot measure a judge."""
        policy, clusters = StatusPolicy(), self.chats.clusters
        return [
            label_problem(one, policy=policy, seed=self.seed, clusters=clusters) for one in self.data.criteria
        ]

    @cached_property
    def report(self) -> dict[str, Any]:
        """The report's body."""
        return build_report(self.data, policy=StatusPolicy(), seed=self.seed)

    @cached_property
    def planned(self) -> list[bool]:
        """By criterion, whether the label plan has enough labels for a status."""
        return [enough(row, Decision.BADGE) for row in self.chats.human]


def trial(chats: Chats, *, judge: Judge, other: Judge, split: str, seed: int, draw: Generator) -> Trial:
    """Ask both judges, and the planted one a second time: of its answers about half come again."""
    before = other(chats, np.zeros_like(chats.truth), draw)
    first, anew = judge(chats, before, draw), judge(chats, before, draw)
    second = np.where(draw.random(first.shape) < REPEATED, first, anew).astype(np.int8)
    seen = chats.split == split if split else np.ones(len(chats), dtype=bool)
    return Trial(chats.among(seen), first[:, seen], second[:, seen], before[:, seen], split=split, seed=seed)


def given(subject: Subject, one: Trial) -> Given:
    """Count the words on one subject: one for each criterion, each chat, or the whole."""
    return READINGS[subject](one)


def _all(words: Iterable[str]) -> Given:
    counted = Counter(words)
    return Given(counted, counted.total(), counted, counted.total())


def _by_criterion(words: list[str], one: Trial) -> Given:
    planned = Counter(word for word, enough_labels in zip(words, one.planned, strict=True) if enough_labels)
    return Given(Counter(words), len(words), planned, planned.total())


def _status(one: Trial) -> Given:
    return _by_criterion([entry["status"] for entry in one.report["criteria"]], one)


def _certificate(one: Trial) -> Given:
    uses = [use_of(entry)[0] for entry in one.report["criteria"]]
    return _by_criterion(["certified" if use is Use.PRODUCTION else "refused" for use in uses], one)


def _overall(one: Trial) -> Given:
    balanced = one.report["overall"]["balanced_accuracy"]
    if balanced["low"] is None:
        return _all(["unknown"])
    above, below = balanced["low"] > CHANCE, balanced["high"] < CHANCE
    return _all(["above chance" if above else "below chance" if below else "chance"])


def _league(one: Trial) -> Given:
    answers = [
        CriterionAnswers(
            f"c{n}",
            TIER,
            one.chats.human[n],
            np.stack([one.judge[n], one.other[n]]),
            one.chats.counts[n],
            one.problems[n],
        )
        for n in range(len(one.judge))
    ]
    groups = compare(answers, runs=[PLANTED, OTHER], clusters=one.chats.clusters)
    overall = next(group for group in groups if group.key == OVERALL)
    better = overall.pairs[0].better
    return _all(["no difference" if better is None else "better" if better == PLANTED else "worse"])


def _gate(one: Trial) -> Given:
    policy = GatePolicy()
    decision = decide(count_evidence(_paired(one, one.judge)), policy=policy)
    if decision.gate is Gate.FAIL and policy.confirm:
        decision = confirm(decision, decide(count_evidence(_paired(one, one.second)), policy=policy))
    return _all([decision.gate.value])


def _paired(one: Trial, candidate: Codes) -> list[PairedVerdicts]:
    return [
        PairedVerdicts(
            entry["key"],
            TIER,
            one.chats.human[n],
            one.other[n],
            candidate[n],
            ceiling=entry["human"]["ceiling"]["value"],
            problem=one.problems[n],
            clusters=one.chats.clusters,
        )
        for n, entry in enumerate(one.report["criteria"])
    ]


def _plan(one: Trial) -> Given:
    return _all("enough" if planned else "label more" for planned in one.planned)


def _consensus(one: Trial) -> Given:
    human, truth = one.chats.human, one.chats.truth
    return _against(human == truth, human == HumanCode.UNRESOLVED)


def _dawid_skene(one: Trial) -> Given:
    """Of the first criterion."""
    labels = one.chats.labels[:, 0]
    raters, chats = np.nonzero(labels >= 0)
    try:
        result = dawid_skene(chats, raters, labels[raters, chats], categories=2)
    except TooFewError:
        return _all(["no estimate"])
    if result.switched:
        return _all(["names switched"])
    right = result.posteriors.argmax(axis=1) == one.chats.truth[0]
    return _against(right, np.zeros_like(right))


def _against(right: Any, unresolved: Any) -> Given:
    words = {"right": int(right.sum()), "unresolved": int(unresolved.sum())}
    return _all(Counter(words | {"wrong": right.size - sum(words.values())}).elements())


def _caution(one: Trial) -> Given:
    """Count the kinds of caution: a criterion may have several, or none."""
    scope = [SPLITS[one.split]] if one.split else []
    texts = ["; ".join([*entry["cautions"], *entry["reasons"], *scope]) for entry in one.report["criteria"]]
    kinds = Counter(kind for text in texts for kind, phrase in CAUTIONS.items() if phrase in text)
    return Given(kinds, len(texts), kinds, len(texts))


READINGS: Mapping[Subject, Callable[[Trial], Given]] = {
    Subject.STATUS: _status,
    Subject.OVERALL: _overall,
    Subject.LEAGUE: _league,
    Subject.GATE: _gate,
    Subject.CERTIFICATE: _certificate,
    Subject.PLAN: _plan,
    Subject.CONSENSUS: _consensus,
    Subject.DAWID_SKENE: _dawid_skene,
    Subject.CAUTION: _caution,
}
