"""Production rates: uncorrected, by curated labels (Lang-Reiczigel) and by the random audit (PPI++)."""

import collections
import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from alignment.monitoring.core.corrected_rates import (
    FEW_FLAG,
    Method,
    Rate,
    lang_reiczigel_rate,
    ppi_rate,
    production_rates,
    uncorrected_rate,
)
from alignment.monitoring.core.two_phase import AuditLabels, TwoPhases
from alignment.monitoring.core.weighted_rates import REASONS, Reason, StratumSums, WeightedRate, weighted_rate
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate
from alignment.statistics.prevalence_correction import CLIPPED
from tests.factories.production_samples import Judge, Population, Topic, audit_of

Floats = NDArray[np.float64]
PUBLISHED = Path(__file__).parents[1] / "statistics" / "published.json"
NIGHT = [StratumSums.of_counts(size=5000, sampled=500, passed=440, failed=60)]
TOPICS = [Topic(12_000, 500, 0.88), Topic(6000, 300, 0.84), Topic(2000, 200, 0.74)]


def published(name: str) -> Any:
    return next(case for case in json.loads(PUBLISHED.read_text(encoding="utf-8")) if case["name"] == name)


def bounds(rate: Rate) -> tuple[float, float]:
    assert rate.estimate.interval is not None
    return rate.estimate.interval.low, rate.estimate.interval.high


def value_of(rate: Rate) -> float:
    assert rate.estimate.value is not None
    return rate.estimate.value


def held(rate: Rate, truth: float) -> bool:
    low, high = bounds(rate)
    return low <= truth <= high


# ---------- uncorrected ----------


def test_the_judges_own_rate_is_called_uncorrected() -> None:
    found = uncorrected_rate(weighted_rate(NIGHT))
    assert (found.method, found.estimate.value, found.reason) == (Method.UNCORRECTED, 0.88, None)
    assert "uncorrected" in found.name


# ---------- curated labels: Rogan-Gladen, Lang-Reiczigel ----------


def second_lang_reiczigel(*, apparent: float, variance: float, curated: Confusion) -> tuple[float, float]:
    """Lang & Reiczigel (2014), equations as printed, with n chosen so that p q / n is the rate's variance."""
    z, n = 1.959963984540054, apparent * (1 - apparent) / variance
    n_se, n_sp = curated.human_true, curated.human_false
    se = (n_se * curated.tp / n_se + 1) / (n_se + 2)
    sp = (n_sp * curated.tn / n_sp + 1) / (n_sp + 2)
    p = (n * apparent + z**2 / 2) / (n + z**2)
    prevalence = (p + sp - 1) / (se + sp - 1)
    shift = (
        2 * z**2 * (prevalence * se * (1 - se) / (n_se + 2) - (1 - prevalence) * sp * (1 - sp) / (n_sp + 2))
    )
    spread = (
        p * (1 - p) / (n + z**2)
        + prevalence**2 * se * (1 - se) / (n_se + 2)
        + (1 - prevalence) ** 2 * sp * (1 - sp) / (n_sp + 2)
    )
    margin = z * math.sqrt(spread / (se + sp - 1) ** 2)
    return prevalence + shift - margin, prevalence + shift + margin


def test_curated_labels_give_the_case_of_the_paper() -> None:
    case = published("lang_reiczigel")
    judged = WeightedRate(Estimate(case["input"]["apparent"]), effective=case["input"]["n"])
    found = lang_reiczigel_rate(judged, Confusion(45, 5, 3, 57))
    assert bounds(found) == pytest.approx(case["expected"], abs=1e-9)
    assert value_of(found) == pytest.approx((0.3 + 0.95 - 1) / (0.9 + 0.95 - 1))
    assert (found.method, found.labels) == (Method.LANG_REICZIGEL, 110)


def test_a_weighted_rate_enters_with_its_own_variance() -> None:
    judged = weighted_rate(
        [
            StratumSums.of_counts(size=9000, sampled=200, passed=180, failed=20),
            StratumSums.of_counts(size=1000, sampled=200, passed=120, failed=80),
        ]
    )
    value = judged.estimate.value
    assert value is not None
    variance = value * (1 - value) / judged.effective
    curated = Confusion(95, 5, 8, 52)
    expected = second_lang_reiczigel(apparent=value, variance=variance, curated=curated)
    assert bounds(lang_reiczigel_rate(judged, curated)) == pytest.approx(expected, abs=1e-9)


def test_where_every_chat_was_judged_only_the_labels_are_uncertain() -> None:
    judged = weighted_rate([StratumSums.of_counts(size=500, sampled=500, passed=440, failed=60)])
    curated = Confusion(95, 5, 8, 52)
    expected = second_lang_reiczigel(apparent=0.88, variance=1e-12, curated=curated)
    assert bounds(lang_reiczigel_rate(judged, curated)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("curated", "reason"),
    [
        (None, Reason.NO_LABELS),
        (Confusion(0, 0, 0, 0), Reason.NO_LABELS),
        (Confusion(50, 3, 0, 0), Reason.ONE_CLASS),
        (Confusion(0, 0, 4, 50), Reason.ONE_CLASS),
        (Confusion(30, 30, 25, 20), Reason.NO_BETTER_THAN_CHANCE),
        (Confusion(1, 0, 9, 1), Reason.NO_BETTER_THAN_CHANCE),  # better only before shrinkage
        (Confusion(6, 4, 3, 5), Reason.TOO_WIDE),
    ],
)
def test_a_rate_that_curated_labels_cannot_correct_says_why(
    curated: Confusion | None, reason: Reason
) -> None:
    found = lang_reiczigel_rate(weighted_rate(NIGHT), curated)
    assert (found.estimate.value, found.estimate.interval, found.reason) == (None, None, reason)
    assert found.estimate.reason == REASONS[reason]


def test_a_rate_outside_the_judges_range_is_clipped_and_says_so() -> None:
    high = [StratumSums.of_counts(size=5000, sampled=500, passed=460, failed=40)]
    found = lang_reiczigel_rate(weighted_rate(high), Confusion(90, 10, 4, 56))
    assert (found.estimate.value, found.estimate.flag) == (1.0, CLIPPED)


def test_a_rate_that_the_judges_errors_do_not_allow_is_not_shown_as_certain() -> None:
    """A judge that passes 85% of good chats cannot pass 98% of all: the labels are not of these chats."""
    high = [StratumSums.of_counts(size=5000, sampled=500, passed=490, failed=10)]
    found = lang_reiczigel_rate(weighted_rate(high), Confusion(170, 30, 10, 190))
    assert (found.estimate.value, found.reason) == (None, Reason.OUTSIDE_RANGE)


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(Reason)


# ---------- the random audit: PPI++ ----------


def simple(
    labels: Floats, verdicts: Floats, others: Floats, *, size: int
) -> tuple[list[StratumSums], AuditLabels]:
    """A simple random sample of `size` chats: labelled ones, and others with a verdict only."""
    n, ones = labels.size + others.size, np.ones(labels.size)
    passed = int(verdicts.sum() + others.sum())
    strata = [StratumSums.of_counts(size=size, sampled=n, passed=passed, failed=n - passed)]
    rows = np.column_stack([ones, labels, ones, verdicts])
    groups = np.zeros(labels.size, dtype=np.int64)
    return strata, audit_of(rows, size / n * ones, groups, np.array([n]))


def paper_ppi(labels: Floats, verdicts: Floats, others: Floats, weight: float) -> tuple[float, float]:
    """Mean and variance as in Angelopoulos, Duchi & Zrnic (2023), on separate labelled and other chats."""
    rest = labels - weight * verdicts
    variance = weight**2 * others.var(ddof=1) / others.size + rest.var(ddof=1) / labels.size
    return float(weight * others.mean() + rest.mean()), float(variance)


def test_the_value_of_the_published_case() -> None:
    """On separate samples lambda is 1; here, with the 10 labelled among the 30 judged, 1 / (1 - 10/30)."""
    case = published("ppi_mean_lambda1")
    y, f, others = (np.array(case["input"][key], dtype=float) for key in ("y", "yhat", "yhat_unlabeled"))
    phases = TwoPhases.of(*simple(y, f, others, size=10**9))
    assert phases.rate(1.5) == pytest.approx(case["expected"]["theta"])


@pytest.mark.parametrize(("m", "n"), [(100, 1000), (400, 2000), (300, 600)])
def test_a_simple_random_audit_gives_the_papers_mean_error_and_lambda(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    truth = rng.random(n) < 0.8
    verdicts = np.where(truth, rng.random(n) < 0.95, rng.random(n) < 0.2).astype(float)
    labels, own, others = truth[:m].astype(float), verdicts[:m], verdicts[m:]
    strata, audit = simple(labels, own, others, size=10**9)
    found = ppi_rate(strata, audit)
    assert found.weight is not None and found.error is not None
    theirs = found.weight * (1 - m / n)
    value, variance = paper_ppi(labels, own, others, theirs)
    assert value_of(found) == pytest.approx(value, abs=1e-12)
    assert found.error == pytest.approx(math.sqrt(variance), rel=0.05)  # they estimate var(f) twice
    grid = np.linspace(0, 1, 1001)
    best = grid[np.argmin([paper_ppi(labels, own, others, weight)[1] for weight in grid])]
    assert theirs == pytest.approx(best, abs=0.05)


def test_the_labels_alone_are_their_weighted_mean() -> None:
    rng = np.random.default_rng(1)
    labels = (rng.random(120) < 0.7).astype(float)
    strata, audit = simple(labels, labels, np.ones(300), size=10**9)
    found = ppi_rate(strata, audit, weight=0.0)
    assert found.method is Method.LABELS
    assert value_of(found) == pytest.approx(labels.mean())
    assert found.error == pytest.approx(labels.std(ddof=1) / math.sqrt(120))


def test_verdicts_that_say_nothing_get_no_weight() -> None:
    labels = np.repeat([1.0, 0.0], [70, 30])
    strata, audit = simple(labels, np.ones(100), np.ones(900), size=10**6)
    assert (ppi_rate(strata, audit).weight, ppi_rate(strata, audit).estimate.value) == (0.0, 0.7)


def every_audit(population: Floats, *, n: int, m: int, weight: float) -> tuple[Floats, Floats]:
    """Rates and their variances over all samples of n chats and all audits of m of them."""
    size, rates, variances = len(population), [], []
    for judged in itertools.combinations(range(size), n):
        own = population[list(judged)]
        strata = [StratumSums.of_chats(size=size, answers=own[:, 2], passes=own[:, 3])]
        for labelled in itertools.combinations(range(n), m):
            audit = audit_of(own[list(labelled)], np.full(m, size / n), np.zeros(m, np.int64), np.array([n]))
            phases = TwoPhases.of(strata, audit)
            rates.append(phases.rate(weight))
            variances.append(phases.variance(weight, rates[-1]))
    return np.array(rates), np.array(variances)


@pytest.mark.parametrize("weight", [0.0, 0.6, 1.0])
def test_over_all_possible_judged_and_labelled_samples_rate_and_variance_are_unbiased(weight: float) -> None:
    ones = np.ones(8)
    human, judge = np.array([1, 1, 0, 1, 0, 1, 1, 0.0]), np.array([1, 1, 0, 0, 1, 1, 1, 0.0])
    rates, variances = every_audit(np.column_stack([ones, human, ones, judge]), n=5, m=3, weight=weight)
    assert rates.mean() == pytest.approx(human.mean())
    assert variances.mean() == pytest.approx(rates.var())


@pytest.mark.parametrize("weight", [0.0, 0.8])
def test_over_all_samples_of_two_nights_the_rate_and_what_labelling_adds_to_its_variance_are_unbiased(
    weight: float,
) -> None:
    """5 and 4 chats, of which 3 and 3 are judged, and 2 and 2 of those labelled."""
    ones = np.ones(9)
    human, judge = np.array([1, 1, 0, 1, 0, 1, 0, 1, 1.0]), np.array([1, 0, 0, 1, 0, 1, 1, 1, 1.0])
    chats = np.column_stack([ones, human, ones, judge])
    nights = [
        [(one, two) for one in itertools.combinations(own, 3) for two in itertools.combinations(one, 2)]
        for own in (range(5), range(5, 9))
    ]
    rates, variances, by_judged = [], [], collections.defaultdict(list)
    for draws in itertools.product(*nights):
        strata = [
            StratumSums.of_chats(size=size, answers=np.ones(3), passes=judge[list(judged)])
            for size, (judged, _) in zip((5, 4), draws, strict=True)
        ]
        rows = chats[[chat for _, labelled in draws for chat in labelled]]
        weights, groups = np.repeat([5 / 3, 4 / 3], 2), np.repeat([0, 1], 2)
        phases = TwoPhases.of(strata, audit_of(rows, weights, groups, np.array([3, 3])))
        rates.append(phases.rate(weight))
        rest = phases.human(rates[-1]) - weight * phases.judge(rates[-1])
        variances.append(phases.second_phase(phases.within(rest, rest)))
        by_judged[tuple(judged for judged, _ in draws)].append(rates[-1])
    assert np.mean(rates) == pytest.approx(human.mean())
    assert np.mean(variances) == pytest.approx(np.mean([np.var(own) for own in by_judged.values()]))


def simulated(population: Population, *, draws: int, audit: int, oversample: int = 0) -> list[Rate]:
    rng = np.random.default_rng(7)
    return [ppi_rate(*population.draw(rng, audit=audit, oversample=oversample)) for _ in range(draws)]


def check(rates: list[Rate], truth: float) -> float:
    """Share of intervals with the truth; the mean rate must be within 3 standard errors of it."""
    values = np.array([value_of(one) for one in rates])
    assert abs(values.mean() - truth) <= 3 * values.std(ddof=1) / math.sqrt(len(values))
    assert np.mean([one.error for one in rates]) == pytest.approx(values.std(), rel=0.12)
    return float(np.mean([held(one, truth) for one in rates]))


CASES = {
    "audit": (Judge(0.95, 0.80), 150, 0),
    "audit and oversampled failures": (Judge(0.95, 0.80), 100, 60),
    "often not applicable": (Judge(0.95, 0.80, not_applicable=0.3), 250, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_audit_corrects_a_biased_judge_without_bias(name: str) -> None:
    judge, audit, oversample = CASES[name]
    population = Population.of(TOPICS, judge, seed=2)
    found = simulated(population, draws=400, audit=audit, oversample=oversample)
    assert check(found, population.rate) >= 0.91


@pytest.mark.heavy
def test_intervals_of_audited_and_curated_rates_hold_on_the_mean() -> None:
    ppi, curated = [], []
    for seed, (judge, audit, oversample) in enumerate(
        [*CASES.values(), (Judge(0.90, 0.90), 100, 0), (Judge(0.95, 0.70), 300, 0)]
    ):
        population = Population.of(TOPICS, judge, seed=seed)
        ppi.append(
            check(simulated(population, draws=2000, audit=audit, oversample=oversample), population.rate)
        )
        if not judge.not_applicable:
            curated.append(curated_coverage(judge, seed=seed, draws=1000))
    assert 0.93 <= np.mean(ppi) <= 0.97, ppi
    assert min(ppi) >= 0.91, ppi
    assert 0.93 <= np.mean(curated) <= 0.985, curated


def curated_coverage(judge: Judge, *, seed: int, draws: int) -> float:
    """Coverage of Lang-Reiczigel with 100 curated labels of either class, drawn anew with each sample."""
    population = Population.of(TOPICS, judge, seed=seed)
    rng, kept = np.random.default_rng(seed), 0
    truth, whole = population.rate, np.concatenate(list(population.chats))
    tpr = whole[whole[:, 1] == 1, 3].mean()
    tnr = 1 - whole[whole[:, 1] == 0, 3].mean()
    for _ in range(draws):
        strata, _ = population.draw(rng, audit=1)
        right = rng.binomial(100, tpr), rng.binomial(100, tnr)
        curated = Confusion(int(right[0]), int(100 - right[0]), int(100 - right[1]), int(right[1]))
        kept += held(lang_reiczigel_rate(weighted_rate(strata), curated), truth)
    return kept / draws


def test_curated_labels_correct_a_weighted_rate() -> None:
    assert 0.92 <= curated_coverage(Judge(0.95, 0.80), seed=1, draws=400) <= 0.99


# ---------- where the audit cannot correct ----------


def audited(passed: int, failed: int) -> tuple[list[StratumSums], AuditLabels]:
    labels = np.repeat([1.0, 0.0], [passed, failed])
    return simple(labels, labels, np.ones(400), size=10**5)


@pytest.mark.parametrize(
    ("passed", "failed", "reason"),
    [
        (0, 0, Reason.NO_LABELS),
        (50, 9, Reason.TOO_FEW_LABELS),
        (80, 0, Reason.ONE_CLASS),
        (0, 80, Reason.ONE_CLASS),
    ],
)
def test_too_few_labels_or_classes_are_named(passed: int, failed: int, reason: Reason) -> None:
    found = ppi_rate(*audited(passed, failed))
    assert (found.estimate.value, found.reason, found.labels) == (None, reason, passed + failed)


def test_a_night_without_labels_is_named() -> None:
    strata, audit = audited(80, 20)
    missing = dataclasses.replace(audit, group_sizes=np.array([500, 300]))
    assert ppi_rate(strata, missing).reason is Reason.UNLABELLED_GROUP


def test_an_unsampled_topic_is_named_by_each_method() -> None:
    strata, audit = audited(80, 20)
    rates = production_rates(
        [*strata, StratumSums.of_counts(size=10, sampled=0, passed=0, failed=0)],
        curated=Confusion(95, 5, 8, 52),
        audit=audit,
    )
    assert len(rates.all) == 4
    assert {one.reason for one in rates.all} == {Reason.UNSAMPLED}


def test_few_labels_of_a_class_are_flagged() -> None:
    assert ppi_rate(*audited(90, 19)).estimate.flag == FEW_FLAG
    assert ppi_rate(*audited(90, 20)).estimate.flag == ""


# ---------- which rate is shown ----------


def test_the_audit_corrects_where_it_can_and_curated_labels_where_it_cannot() -> None:
    curated = Confusion(95, 5, 8, 52)
    strata, audit = audited(80, 20)
    assert production_rates(strata, curated=curated, audit=audit).corrected.method is Method.PPI
    strata, few = audited(30, 9)
    assert production_rates(strata, curated=curated, audit=few).corrected.method is Method.LANG_REICZIGEL
    found = production_rates(strata, audit=few).corrected
    assert (found.method, found.reason) == (Method.PPI, Reason.TOO_FEW_LABELS)
    found = production_rates(strata).corrected
    assert (found.estimate.value, found.reason) == (None, Reason.NO_LABELS)


def test_labels_that_know_the_rate_better_than_the_correction_are_named() -> None:
    rng = np.random.default_rng(4)
    labels, verdicts, others = (rng.random(n) < 0.75 for n in (200, 200, 400))  # a judge without a clue
    strata, audit = simple(labels.astype(float), verdicts.astype(float), others.astype(float), size=10**5)
    rates = production_rates(strata, curated=Confusion(45, 15, 15, 45), audit=audit)
    assert not rates.labels_narrower  # PPI++ is shown: it gives such verdicts no weight
    assert rates.labels is not None
    assert rates.ppi.width == pytest.approx(rates.labels.width, rel=0.05)
    assert dataclasses.replace(rates, ppi=Rate.missing(Method.PPI, Reason.TOO_WIDE)).labels_narrower
