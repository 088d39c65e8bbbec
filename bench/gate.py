"""The gate on simulated releases: how often it fails equal prompts, and how often it misses a loss."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment.regression.core import Gate, GatePolicy, PairedVerdicts, confirm, count_evidence, decide
from bench import Figure

CRITERIA = 13
RELEASES = 500
# Shares measured between two prompt versions, and how alike the verdicts of one chat are.
CHANGED = 0.08
ICC = 0.15
SHARED_DIRECTION = 0.5
RIGHT = 0.9
# Of a prompt's answers, those that come again when it is asked again; the others are noise.
REPEATED = 0.5
FALSE_FAIL = 0.04
ABC = replace(GatePolicy(), class_alpha=1e-9, floor=1e-9, ceiling_gap=1 - 1e-9)
# The power curve: points of accuracy that the candidate loses, chats, and releases of each kind.
LOSSES = (0.0, -0.02, 0.02, -0.05, 0.05, -0.10, 0.10)
SIZES = (60, 120, 240, 480)
CURVE_RELEASES = 1000
MOST_FALSE_FAILS = 0.05
MOST_PASSED = 0.02  # of candidates that lose 10 points


@dataclass(frozen=True, slots=True)
class Truth:
    """What a release does: shares of verdicts broken and fixed, by criterion.

    `failed` is the share of releases that rules A, B and C alone fail at 100, 200 and 400 chats, in 3,000
    simulated releases; None where nobody simulated it.
    """

    name: str
    broken: tuple[float, ...]
    fixed: tuple[float, ...]
    failed: dict[int, float]


def _one(loss: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """One criterion loses, the others change in both directions alike."""
    rest = (CHANGED / 2,) * (CRITERIA - 1)
    return ((CHANGED + loss) / 2, *rest), ((CHANGED - loss) / 2, *rest)


def _all(loss: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return ((CHANGED + loss) / 2,) * CRITERIA, ((CHANGED - loss) / 2,) * CRITERIA


TRUTHS = (
    Truth("equal", *_all(0.0), {100: 0.039, 200: 0.038, 400: 0.039}),
    Truth("one criterion -7.9 points", *_one(0.079), {100: 0.437, 200: 0.980}),
    Truth("one criterion -6 points", *_one(0.06), {200: 0.606, 400: 0.955}),
    Truth("all criteria -2 points", *_all(0.02), {100: 0.415, 200: 0.680, 400: 0.920}),
)


def _added(loss: float, *, criteria: int, losing: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Every criterion changes as in equal judges, and the first ones lose (or gain) on top of it."""
    half = CHANGED / 2
    rest = (half,) * (criteria - losing)
    return (half + max(loss, 0.0),) * losing + rest, (half + max(-loss, 0.0),) * losing + rest


@dataclass(frozen=True, slots=True)
class Design:
    """What is tested: the number of criteria, and how many of them the candidate changes for better or worse.

    `revised` is the number of criteria whose prompt or judge the test changes.
    """

    name: str
    criteria: int
    losing: int
    revised: int
    releases: int


DESIGNS = (
    Design("one criterion alone", 1, 1, 1, CURVE_RELEASES),
    Design("one of four in a call", 4, 1, 1, CURVE_RELEASES // 2),
    Design("all of thirteen", CRITERIA, CRITERIA, CRITERIA, CURVE_RELEASES // 4),
)


def figures() -> Iterator[Figure]:
    """Share failed (equal) or missed by rules A to C and by the whole gate, then the power curve."""
    for truth in TRUTHS:
        for chats in (100, 200, 400):
            yield from _of(truth, chats)
    for design in DESIGNS:
        yield from curve(design)


def curve(design: Design) -> Iterator[Figure]:
    """Share of candidates of each truth that pass and that fail, by number of chats."""
    for loss in LOSSES:
        name = f"{design.name}, {f'{-100 * loss:+.0f} points' if loss else 'equal'}"
        truth = Truth(name, *_added(loss, criteria=design.criteria, losing=design.losing), {})
        for chats in SIZES:
            found = [
                release(truth, chats, seed=seed, revised=design.revised).whole
                for seed in range(design.releases)
            ]
            passed, failed = (found.count(gate) / len(found) for gate in (Gate.PASS, Gate.FAIL))
            most_failed = MOST_FALSE_FAILS if loss == 0 else 1.0
            # One of several criteria is under the rules of the family, which do not promise this.
            promised = loss == LOSSES[-1] and design.losing == design.criteria
            yield Figure(f"{name}, {chats} chats: PASS", passed, MOST_PASSED if promised else 1.0, "of 1")
            yield Figure(f"{name}, {chats} chats: FAIL", failed, most_failed, "of 1")


def _of(truth: Truth, chats: int) -> Iterator[Figure]:
    found = [release(truth, chats, seed=seed) for seed in range(RELEASES)]
    known = truth.failed.get(chats)
    equal = truth.name == "equal"
    what = "false FAIL" if equal else "missed"
    for name, fails in (
        ("rules A-C", [one.by_abc for one in found]),
        ("whole gate", [one.whole is Gate.FAIL for one in found]),
    ):
        share = float(np.mean(fails))
        yield Figure(
            f"{truth.name}, {chats} chats, {name}: {what}",
            share if equal else 1 - share,
            _limit(known, equal=equal, confirmed=name == "whole gate"),
            "of 1",
        )
    passed = float(np.mean([one.whole is Gate.PASS for one in found]))
    yield Figure(f"{truth.name}, {chats} chats, whole gate: PASS", passed, 1.0, "of 1")


def _limit(known: float | None, *, equal: bool, confirmed: bool) -> float:
    """The published share and two standard errors of the difference between the two simulations."""
    if equal:
        return FALSE_FAIL + 2 * math.sqrt(FALSE_FAIL * (1 - FALSE_FAIL) / RELEASES)
    if known is None or confirmed:
        return 1.0
    return 1 - known + 2 * math.sqrt(known * (1 - known) * (1 / RELEASES + 1 / 3000))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether rules A to C fail a release, and what the whole gate says after a confirming run."""

    by_abc: bool
    whole: Gate


def release(truth: Truth, chats: int, *, seed: int, revised: int = CRITERIA) -> Outcome:
    """One simulated release: a champion, a candidate, and the candidate's second run where the gate fails.

    The test changes the first `revised` criteria; the others share their call.
    """
    draw = np.random.default_rng(seed)
    human, champion, candidate, second = planted(truth, chats, draw)
    evidence = count_evidence(_paired(human, champion, candidate, revised))
    decision = decide(evidence, policy=GatePolicy())
    if decision.gate is Gate.FAIL:
        decision = confirm(
            decision, decide(count_evidence(_paired(human, champion, second, revised)), policy=GatePolicy())
        )
    return Outcome(decide(evidence, policy=ABC).gate is Gate.FAIL, decision.gate)


def planted(
    truth: Truth, chats: int, draw: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """One release, by criterion and chat: people's answer (0 True, 1 False), and who is right.

    Those are champion, candidate, and the candidate in its second run.
    """
    human = (draw.random((len(truth.broken), chats)) < 0.7).astype(np.int8)
    change = changes(truth, chats, draw)
    champion = np.where(change == 0, draw.random(change.shape) < RIGHT, change < 0)
    candidate = np.where(change == 0, champion, change > 0)
    return human, champion, candidate, _asked_again(truth, champion, candidate, draw)


def changes(truth: Truth, chats: int, draw: np.random.Generator) -> NDArray[np.int8]:
    """By criterion and chat: -1 broken, 1 fixed, 0 unchanged.

    Chats differ in how much changes (beta, intra-class correlation 0.15); in half of them all that changes
    goes one way.
    """
    spread = 1 / ICC - 1
    rate = draw.beta(CHANGED * spread, (1 - CHANGED) * spread, chats)
    broken, fixed = np.array(truth.broken)[:, None], np.array(truth.fixed)[:, None]
    shape = len(truth.broken), chats
    changed = draw.random(shape) < rate * (broken + fixed) / CHANGED
    direction = draw.random(shape)
    one_way = draw.random(chats) < SHARED_DIRECTION
    direction[:, one_way] = draw.random(int(one_way.sum()))
    return np.where(changed, np.where(direction < broken / (broken + fixed), -1, 1), 0).astype(np.int8)


def _asked_again(
    truth: Truth, champion: NDArray[np.bool_], candidate: NDArray[np.bool_], draw: np.random.Generator
) -> NDArray[np.bool_]:
    """The candidate's second run: half of its answers come again, the others are drawn anew."""
    broken, fixed = np.array(truth.broken)[:, None], np.array(truth.fixed)[:, None]
    same = 1 - broken - fixed
    chance = draw.random(champion.shape)
    anew = np.where(
        champion,
        chance >= broken / (broken + same * RIGHT),
        chance < fixed / (fixed + same * (1 - RIGHT)),
    )
    return np.where(draw.random(champion.shape) < REPEATED, candidate, anew)


def _paired(
    human: NDArray[np.int8], champion: NDArray[np.bool_], candidate: NDArray[np.bool_], revised: int
) -> Sequence[PairedVerdicts]:
    """Verdicts of which so many are right."""
    old, new = (np.where(right, human, 1 - human).astype(np.int8) for right in (champion, candidate))
    return [
        PairedVerdicts(f"c{n}", "simple", human[n], old[n], new[n], revised=n < revised)
        for n in range(len(human))
    ]
