"""Chats that belong together: the gate counts their cluster as one unit in every test, bound and minimum."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from alignment.comparison.core.codes import Clusters
from alignment.regression.core import (
    Decision,
    Evidence,
    Gate,
    GatePolicy,
    PairedVerdicts,
    count_evidence,
    decide,
    flip_share,
    gate_power,
    junit_xml,
    markdown_summary,
    regression_body,
)
from alignment.regression.core.topics import changes_by_topic
from tests.factories.gate_verdicts import verdicts

POLICY = GatePolicy()


def copied(once: PairedVerdicts, copies: int, *, clustered: bool) -> PairedVerdicts:
    """Each chat so many times, as one cluster or as chats that are alone."""
    human, champion, candidate = (np.tile(of, copies) for of in (once.human, once.champion, once.candidate))
    clusters = np.tile(np.arange(len(once.human)), copies) if clustered else None
    return replace(once, human=human, champion=champion, candidate=candidate, clusters=clusters)


def evidence(*criteria: PairedVerdicts) -> Evidence:
    return count_evidence(criteria)


def gate(*criteria: PairedVerdicts) -> Decision:
    return decide(evidence(*criteria), policy=POLICY)


def body(*criteria: PairedVerdicts) -> dict[str, Any]:
    found = evidence(*criteria)
    return regression_body(found, decide(found, policy=POLICY), seed=1)


@pytest.mark.parametrize(
    ("fixed", "broken", "right"), [(0, 0, 60), (1, 5, 114), (3, 9, 108), (9, 3, 108), (10, 12, 178)]
)
@pytest.mark.parametrize("copies", [2, 5])
def test_copies_of_chats_in_one_cluster_show_no_more_than_one_of_each(
    fixed: int, broken: int, right: int, copies: int
) -> None:
    once = verdicts(fixed=fixed, broken=broken, right=right)
    (one,) = evidence(once).criteria
    (apart,) = evidence(copied(once, copies, clustered=False)).criteria
    (together,) = evidence(copied(once, copies, clustered=True)).criteria
    assert (together.n, together.fixed, together.broken) == (apart.n, apart.fixed, apart.broken)
    assert together.difference.value == one.difference.value
    assert together.low(0.05) <= one.low(0.05) < apart.low(0.05)  # type: ignore[operator]
    if broken > fixed:
        assert apart.p_worse < one.p_worse <= together.p_worse
    for alone, same in zip(one.classes, together.classes, strict=True):
        assert same.p_worse >= alone.p_worse or alone.p_worse > 0.5


def test_a_loss_that_a_few_dialogues_make_does_not_fail() -> None:
    """Sixteen broken chats are sixteen turns of two dialogues."""
    turns = verdicts(broken=16, right=224)
    assert gate(turns).gate is Gate.FAIL
    dialogues = replace(turns, clusters=np.arange(240) // 8)
    assert gate(dialogues).gate is not Gate.FAIL


def test_a_hundred_clusters_are_needed_to_pass_alone() -> None:
    few = replace(verdicts(right=396), clusters=np.arange(396) // 4)
    assert (gate(few).gate, gate(few).reasons) == (
        Gate.INCONCLUSIVE,
        ("polite: 396 labelled chats in 99 clusters; 100 clusters are needed to pass alone",),
    )
    enough = replace(verdicts(right=400), clusters=np.arange(400) // 4)
    assert gate(enough).gate is Gate.PASS
    assert gate(enough).reasons == (
        "polite: 0 fixed, 0 broken of 400 chats in 100 clusters; at worst −2.7 points with 95% confidence"
        " (limit −8.0 points)",
    )


def test_the_reason_of_a_fail_and_of_a_class_loss_name_chats_and_clusters() -> None:
    worse = replace(verdicts(broken=48, right=352), clusters=np.arange(400) // 2)
    assert (
        gate(worse)
        .reasons[0]
        .startswith("polite got worse: 48 broken, 0 fixed of 400 chats in 200 clusters (p < 0.001")
    )


def test_advice_asks_for_chats_in_new_clusters_and_for_more_of_them() -> None:
    alone = verdicts(fixed=9, broken=16, right=145)
    twice = copied(alone, 2, clustered=True)
    few, many = gate(alone), gate(twice)
    assert few.more_labels and many.more_labels
    assert 1.9 * (few.more_labels + 170) < many.more_labels + 340 < 2.4 * (few.more_labels + 170)
    assert many.advice.endswith(
        f"about {many.more_labels:,} more labelled chats in new clusters are needed for the gate"
    )


def test_the_mean_over_criteria_counts_clusters() -> None:
    def family(copies: int, *, clustered: bool) -> tuple[PairedVerdicts, ...]:
        first = verdicts(fixed=4, broken=9, right=107)
        rest = [verdicts(right=120, key=f"other_{n}") for n in range(3)]
        return tuple(copied(one, copies, clustered=clustered) for one in (first, *rest))

    one, apart = evidence(*family(1, clustered=False)).pooled, evidence(*family(4, clustered=False)).pooled
    together = evidence(*family(4, clustered=True)).pooled
    assert (together.chats, together.clusters, together.mean) == (480, 120, one.mean)
    assert together.error == pytest.approx(one.error, rel=0.02)
    assert together.low(0.05) < one.low(0.05) < apart.low(0.05)  # type: ignore[operator]
    assert (
        gate(*family(4, clustered=True))
        .reasons[-1]
        .endswith("points with 95% confidence on 480 chats in 120 clusters (limit −2.0 points)")
    )


def test_few_clusters_have_no_mean() -> None:
    same = replace(verdicts(right=50), clusters=np.zeros(50, dtype=np.int64))
    other = replace(same, key="exact")
    assert gate(same, other).reasons == (
        "50 labelled chats in 1 cluster are too few to estimate the mean change",
    )


def test_the_rates_of_both_judges_and_the_noise_count_clusters() -> None:
    once = verdicts(fixed=4, broken=6, right=100, wrong=10)
    apart, together = (
        body(copied(once, 4, clustered=clustered))["criteria"][0] for clustered in (False, True)
    )
    for side in ("before", "after"):
        for name in ("tpr", "tnr", "balanced_accuracy", "gwet_ac1", "kappa", "right"):
            assert together[side][name]["value"] == pytest.approx(apart[side][name]["value"])
            assert _width(together[side][name]) > 1.5 * _width(apart[side][name]), name
    for name in ("change", "changed"):
        assert together[name]["value"] == apart[name]["value"]
        assert _width(together[name]) > 1.5 * _width(apart[name])
    first, second = np.tile(once.champion, 4), np.tile(once.candidate, 4)
    clusters = np.tile(np.arange(120), 4)
    assert _width(flip_share(first, second, clusters).as_json()) > 1.5 * _width(
        flip_share(first, second).as_json()
    )


def test_topics_count_clusters() -> None:
    pair = copied(verdicts(fixed=4, broken=6, right=110), 3, clustered=True)
    topics = np.ones(len(pair.human), dtype=np.int64)
    (row,) = changes_by_topic(pair, topics)
    (alone,) = changes_by_topic(replace(pair, clusters=None), topics)
    assert row.table == alone.table
    assert _width(row.difference.as_json()) > 1.5 * _width(alone.difference.as_json())


@pytest.mark.parametrize("clusters", [None, np.arange(200)])
def test_without_shared_clusters_nothing_changes(clusters: Clusters) -> None:
    """The figures of version 2 of the policy, before chats had clusters."""
    one = replace(verdicts(fixed=6, broken=14, right=172, wrong=8), clusters=clusters)
    other = replace(verdicts(fixed=3, broken=2, right=195, key="exact"), clusters=clusters)
    (first, _), pooled = body(one, other)["criteria"], body(one, other)["pooled"]
    assert (first["p_worse"], first["p_holm"]) == (0.039176940917968736, 0.07835388183593747)
    assert first["change"] == {"value": -0.04, "low": -0.08853210319523504, "high": 0.004178514643022515}
    assert (first["clusters"], pooled["clusters"]) == (None, None)
    assert (pooled["error"], pooled["z"]) == (0.012963758915767086, -1.349917112290305)


def test_equal_judges_on_dialogues_fail_in_five_percent_at_most() -> None:
    """60 dialogues of 4 turns that mostly change together: counted as chats, one test in seven fails."""
    fails = {"clusters": 0, "chats": 0}
    for seed in range(400):
        draw = np.random.default_rng(seed)
        dialogue = draw.choice([-1, 0, 1], size=60, p=[0.05, 0.9, 0.05])
        own = draw.choice([-1, 0, 1], size=240, p=[0.02, 0.96, 0.02])
        change = np.where(draw.random(240) < 0.8, np.repeat(dialogue, 4), own)
        human = (draw.random(240) < 0.5).astype(np.int8)
        old, new = (np.where(wrong, 1 - human, human).astype(np.int8) for wrong in (change > 0, change < 0))
        pair = PairedVerdicts("polite", "simple", human, old, new)
        fails["chats"] += gate(pair).gate is Gate.FAIL
        fails["clusters"] += gate(replace(pair, clusters=np.arange(240) // 4)).gate is Gate.FAIL
    assert fails["clusters"] <= 0.05 * 400
    assert fails["chats"] > 0.12 * 400


def test_ci_says_chats_and_clusters() -> None:
    answer = body(copied(verdicts(fixed=4, broken=6, right=110), 2, clustered=True)) | {"test": 7}
    text = markdown_summary(answer, title="polite version 2")
    assert "| `polite` | 240 in 120 clusters | 8 | 12 |" in text
    assert "tests and intervals count clusters, not chats" in text
    suite = ElementTree.fromstring(junit_xml(answer, title="polite version 2"))  # noqa: S314  ours
    assert "240 in 120 clusters" in str(suite.findtext("testcase/system-out"))
    alone = markdown_summary(body(verdicts(right=120)), title="polite version 2")
    assert "cluster" not in alone


def test_the_start_form_counts_clusters() -> None:
    words = gate_power(240, criteria=1, policy=POLICY, clusters=60)
    assert words == (
        "240 labelled chats in 60 clusters are too few to pass. Label chats of 40 more clusters for the gate."
    )
    assert "(at least 69%)" in gate_power(900, criteria=1, policy=POLICY, clusters=100)


def _width(estimate: dict[str, Any]) -> float:
    return float(estimate["high"] - estimate["low"])
