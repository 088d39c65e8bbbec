"""Statistics against published values, or values computed by hand.

`published.json` holds each case with its source: `[[TP, FN], [FP, TN]]` are tables with people as rows, True
first; in paired cases a, b, c, d are both, only the first, only the second, neither. `kind` says where the
expected value comes from: published, published but quoted from memory and reproduced, derived, or what a
library answers. Statistics that the product takes from a library, or does not show, are checked on that
library or on a formula written out here.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, t
from sklearn.metrics import confusion_matrix
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
    proportions_ztest,
    samplesize_confint_proportion,
)

from alignment.statistics.agreement import (
    Confusion,
    brennan_prediger,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac1_raters,
    krippendorff_alpha,
    percent_agreement,
    scott_pi,
)
from alignment.statistics.agreement.two_raters import GwetAC1
from alignment.statistics.alt_test import alt_test
from alignment.statistics.calibration import calibration, expected_calibration_error, reliability_bins
from alignment.statistics.cusum import lower_cusum
from alignment.statistics.estimates import Interval
from alignment.statistics.intervals import clopper_pearson, patterns, resample_chats, wilson
from alignment.statistics.paired_tests import (
    PairedTable,
    holm,
    mcnemar_midp,
    newcombe_interval,
    tango_interval,
    tango_z,
)
from alignment.statistics.prediction_powered import ppi_share
from alignment.statistics.prevalence_correction import lang_reiczigel, rogan_gladen
from alignment.statistics.stratified import Stratum, stratified_share
from labeling.chats.core.allocation import AllocationRule, allocated_shares, allocation
from labeling.consensus.core.votes import Votes, consensus_of

Given = dict[str, Any]
CASES = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
Z = 1.959963984540054


def ends(interval: Interval | None) -> list[float]:
    assert interval is not None
    return [interval.low, interval.high]


def confusion_of(given: Given) -> Confusion:
    """From counts, or from lists of answers of which 1 is True."""
    if "tp" in given:
        return Confusion(given["tp"], given["fn"], given["fp"], given["tn"])
    tn, fp, fn, tp = confusion_matrix(given["y_true"], given["y_pred"], labels=[0, 1]).ravel().tolist()
    return Confusion(tp, fn, fp, tn)


def paired_of(given: Given) -> PairedTable:
    return PairedTable(given["a"], given["b"], given["c"], given["d"])


def counted(ratings: list[list[int | None]]) -> np.ndarray:
    """Ratings by unit and rater as counts by unit and category."""
    categories = sorted({value for row in ratings for value in row if value is not None})
    categories += [-1] * (2 - len(categories))
    return np.array([[row.count(category) for category in categories] for row in ratings])


def table_of_labels(first: list[str], second: list[str]) -> list[list[int]]:
    names = sorted({*first, *second})
    table: list[list[int]] = confusion_matrix(first, second, labels=names).tolist()
    return table


# ---------- one function for each statistic ----------


def kappa(given: Given) -> Given:
    table = np.array(given["table"], dtype=float)
    shares = table / table.sum()
    return {
        "po": float(np.trace(shares)),
        "pe": float(shares.sum(0) @ shares.sum(1)),
        "kappa": cohen_kappa(given["table"]).value,
    }


def kappa_with_error(given: Given) -> Given:
    return {"kappa": cohen_kappa(given["table"]).value, "se": cohens_kappa(given["table"]).std_kappa}


def kappa_of_labels(given: Given) -> Given:
    return {"kappa": cohen_kappa(table_of_labels(given["a"], given["b"])).value}


def ac1_body(found: GwetAC1) -> Given:
    interval = found.estimate.interval
    return {
        "ac1": found.estimate.value,
        "se": found.standard_error,
        "ci": ends(interval) if interval else None,
    }


def ac1_of_table(given: Given) -> Given:
    body = ac1_body(gwet_ac1(given["table"]))
    table = np.array(given["table"], dtype=float)
    body["pe"] = (body["ac1"] - np.trace(table) / table.sum()) / (body["ac1"] - 1) if body["ac1"] != 1 else 0
    return body


def fleiss_both_ways(given: Given) -> Given:
    counts = np.array(given["counts"])
    return {"fixed": fleiss_kappa(counts), "free": float(statsmodels_fleiss(counts, method="randolph"))}


def fleiss_of_unequal(given: Given) -> Given:
    counts = counted(given["ratings_units_by_raters"])
    observed, value = percent_agreement(counts), fleiss_kappa(counts)
    assert observed is not None
    assert value is not None
    return {"pa": observed, "pe": (observed - value) / (1 - value), "kappa": value}


def alpha_with_analytic_interval(given: Given) -> Given:
    """Gwet (2014), Handbook of Inter-Rater Reliability, chapter 5: the variance over subjects."""
    counts = counted(given["ratings_units_by_raters"])
    rated = counts[counts.sum(axis=1) >= 2].astype(float)
    alpha, error = krippendorff_alpha(counts), _alpha_error(rated)
    assert alpha is not None
    margin = float(t.ppf(0.975, len(rated) - 1)) * error
    return {"alpha": alpha, "se": error, "ci": [alpha - margin, min(1.0, alpha + margin)]}


def _alpha_error(rated: np.ndarray) -> float:
    raters = rated.sum(axis=1)
    n, mean = len(rated), raters.mean()
    shares = rated.sum(axis=0) / rated.sum()
    expected = float(shares @ shares)
    agreeing = (rated * (rated - 1)).sum(axis=1) / (mean * (raters - 1))
    smallest = 1 / rated.sum()
    alpha = ((1 - smallest) * agreeing.mean() + smallest - expected) / (1 - expected)
    observed = agreeing - agreeing.mean() * (raters - mean) / mean
    chance = rated @ shares / mean - expected * (raters - mean) / mean
    by_unit = (observed - expected) / (1 - expected) - 2 * (1 - alpha) * (chance - expected) / (1 - expected)
    return float(np.sqrt(((by_unit - alpha) ** 2).sum() / (n * (n - 1))))


def confusion_counts(given: Given) -> Given:
    table = confusion_of(given)
    return {"tn": table.tn, "fp": table.fp, "fn": table.fn, "tp": table.tp}


def binary_metrics(given: Given) -> Given:
    table = confusion_of(given)
    names = ("accuracy", "balanced_accuracy", "precision", "tpr", "tnr", "f1", "mcc", "pabak", "kappa")
    return {name: getattr(table, name) for name in names}


def mcnemar_all(given: Given) -> Given:
    (_, b), (c, _) = given["table"]
    low, high = min(b, c), max(b, c)
    asymptotic = {
        name: float(mcnemar(given["table"], exact=False, correction=corrected).pvalue) if b + c else None
        for name, corrected in (("asymptotic", False), ("asymptotic_cc", True))
    }
    exact = binomtest(low, b + c).pvalue if b + c else 1.0
    midp = 2 * mcnemar_midp(high, low) if b + c else mcnemar_midp(0, 0)
    return {"exact": exact, "midp": midp, **asymptotic}


def tango_test(given: Given) -> Given:
    table = paired_of(given)
    z = float(tango_z(table.first, table.second, table.n, at=-given["delta"]))
    return {"z": z, "p_one_sided": math.erfc(z / math.sqrt(2)) / 2}


def rogan_gladen_clipped(given: Given) -> Given:
    found = rogan_gladen(apparent=given["apparent"], tpr=given["se"], tnr=given["sp"])
    if found is None:
        return {"prevalence": None}
    return {"prevalence_raw": found.raw, "prevalence_clipped": found.value}


def rogan_gladen_known_rates(given: Given) -> Given:
    def corrected(apparent: float) -> float:
        found = rogan_gladen(apparent=apparent, tpr=given["se"], tnr=given["sp"])
        assert found is not None
        return found.value

    low, high = ends(clopper_pearson(given["x"], given["n"]))
    return {"prevalence": corrected(given["x"] / given["n"]), "ci": [corrected(low), corrected(high)]}


def rogan_gladen_error(given: Given) -> Given:
    """The delta method's error, written out; with many chats the product's interval comes to the same."""
    p, tpr, tnr = given["apparent"], given["se"], given["sp"]
    youden = tpr + tnr - 1
    share = (p + tnr - 1) / youden
    by_rate = (
        share**2 * tpr * (1 - tpr) / given["n_pos"] + (1 - share) ** 2 * tnr * (1 - tnr) / given["n_neg"]
    )
    error = math.sqrt(p * (1 - p) / given["n"] + by_rate) / youden
    many = {name: 10**6 * given[key] for name, key in (("n", "n"), ("n_true", "n_pos"), ("n_false", "n_neg"))}
    low, high = ends(lang_reiczigel(apparent=p, tpr=tpr, tnr=tnr, **many))
    assert 1000 * (high - low) / (2 * Z) == pytest.approx(error, rel=1e-6)
    return {"se": error}


def corrected_interval(given: Given) -> list[float]:
    return ends(
        lang_reiczigel(
            apparent=given["apparent"],
            n=given["n"],
            tpr=given["se"],
            n_true=given["n_pos"],
            tnr=given["sp"],
            n_false=given["n_neg"],
        )
    )


def ppi(given: Given) -> Given:
    found = ppi_share(
        *(np.array(given[name], dtype=float) for name in ("y", "yhat", "yhat_unlabeled")),
        weight=given["lambda"],
        confidence=given["conf"],
    )
    return {"theta": found.value, "ci": ends(found.interval)}


def neyman_shares(given: Given) -> list[float]:
    found = allocated_shares(given["N"], given["n"], rule=AllocationRule.NEYMAN, spreads=given["S"])
    return [float(value) for value in found]


def stratified(given: Given) -> Given:
    strata = [Stratum(*row) for row in zip(given["N"], given["n"], given["p"], strict=True)]
    found = stratified_share(strata)
    low, high = ends(found.interval)
    return {
        "estimate": found.value,
        "se": (high - low) / (2 * Z),
        "unweighted_wrong": sum(given["p"]) / len(given["p"]),
    }


def calibration_error(given: Given) -> float | None:
    stated, answered = np.array(given["p"]), np.array(given["y"]) == 1
    return expected_calibration_error(reliability_bins(answered, stated, bins=given["bins"]))


def cusum(given: Given) -> Given:
    found = lower_cusum(given["x"], target=given["target"], allowance=given["k"], limit=given["h"])
    return {"lower": list(found.sums), "alarm_index": found.alarm}


def published_alt_test(given: Given) -> Given:
    people = np.array([[int(answer) for answer in answers] for answers in given["humans"].values()]).T
    judge = np.array([int(answer) for answer in given["judge"]])
    found = alt_test(people, judge, seed=1, epsilon=given["epsilon"])
    assert found.balanced is False
    return {"winning_rate": found.winning_rate, "advantage_probability": found.advantage}


def clustered_error(given: Given) -> Given:
    """The error of a share by resampling chats, within a tenth of what it converges to."""
    answers, times = np.array(given["y_by_chat"]), given["rows_a_chat"]
    rows = np.column_stack([answers, 1 - answers]) * times
    found = patterns(rows)
    resampled = resample_chats(found.rows, found.chats, seed=1, resamples=4000).sums
    assert resampled is not None
    share = answers.mean()
    naive = math.sqrt(share * (1 - share) / rows.sum())
    by_chat = float((resampled[:, 0] / resampled.sum(axis=1)).std())
    exact = math.sqrt(share * (1 - share) / len(answers))
    assert by_chat == pytest.approx(exact, rel=0.1)
    return {"naive_se": naive, "cluster_se": exact, "ratio": exact / naive}


def majority(given: Given) -> Given:
    true = sum(given["labels"])
    decided = consensus_of(Votes(n_true=true, n_false=len(given["labels"]) - true))
    assert decided is not None
    return {"consensus": {"true": 1, "false": 0}.get(decided.state)}


def newcombe_independent(given: Given) -> list[float]:
    found = confint_proportions_2indep(
        given["x1"], given["n1"], given["x2"], given["n2"], compare="diff", method="newcomb"
    )
    return [float(end) for end in found]


STATISTICS: dict[str, Callable[[Given], Any]] = {
    "cohen_kappa": kappa,
    "cohen_kappa_ci": kappa_with_error,
    "cohen_kappa_labels": kappa_of_labels,
    "scott_pi": lambda given: {"pi": scott_pi(given["table"])},
    "gwet_ac1_table": ac1_of_table,
    "pabak": lambda given: {"bp": brennan_prediger(given["table"])},
    "fleiss_kappa": lambda given: {"kappa": fleiss_kappa(given["counts"])},
    "fleiss_and_free_marginal": fleiss_both_ways,
    "fleiss_kappa_missing": fleiss_of_unequal,
    "krippendorff_alpha_nominal": lambda given: {
        "alpha": krippendorff_alpha(counted(given["ratings_units_by_raters"]))
    },
    "krippendorff_alpha_ci_analytic": alpha_with_analytic_interval,
    "gwet_ac1_multi": lambda given: ac1_body(gwet_ac1_raters(counted(given["ratings_units_by_raters"]))),
    "confusion_matrix": confusion_counts,
    "mcc": lambda given: {"mcc": confusion_of(given).mcc},
    "balanced_accuracy": lambda given: {"balanced_accuracy": confusion_of(given).balanced_accuracy},
    "binary_metrics": binary_metrics,
    "wilson": lambda given: ends(wilson(given["x"], given["n"])),
    "clopper_pearson": lambda given: ends(clopper_pearson(given["x"], given["n"])),
    "mcnemar": mcnemar_all,
    "tango_paired_diff": lambda given: ends(tango_interval(paired_of(given), confidence=given["conf"])),
    "tango_noninferiority": tango_test,
    "newcombe_paired_diff": lambda given: ends(newcombe_interval(paired_of(given))),
    "newcombe_independent_diff": newcombe_independent,
    "two_proportion_z": lambda given: {
        "p": float(proportions_ztest([given["x1"], given["x2"]], [given["n1"], given["n2"]])[1])
    },
    "benjamini_hochberg": lambda given: {
        "n_rejected": int(multipletests(given["p"], alpha=given["q"], method="fdr_bh")[0].sum())
    },
    "bh_adjusted": lambda given: multipletests(given["p"], method="fdr_bh")[1].tolist(),
    "holm": lambda given: {"n_rejected": sum(p <= given["alpha"] for p in holm(given["p"]))},
    "holm_adjusted": lambda given: holm(given["p"]),
    "rogan_gladen": rogan_gladen_clipped,
    "rogan_gladen_known_ci": rogan_gladen_known_rates,
    "rogan_gladen_se": rogan_gladen_error,
    "lang_reiczigel_ci": corrected_interval,
    "ppi_mean": ppi,
    "neyman_allocation": lambda given: allocation(
        given["N"], given["n"], rule=AllocationRule.NEYMAN, spreads=given["S"]
    ),
    "neyman_allocation_real": neyman_shares,
    "proportional_allocation": lambda given: allocation(
        given["N"], given["n"], rule=AllocationRule.PROPORTIONAL
    ),
    "stratified_proportion": stratified,
    "brier": lambda given: calibration(np.array(given["y"]) == 1, np.array(given["p"])).brier,
    "ece_equal_width": calibration_error,
    "samplesize_halfwidth": lambda given: float(
        samplesize_confint_proportion(given["p"], given["halfwidth"])
    ),
    "cusum_tabular": cusum,
    "alt_test": published_alt_test,
    "cluster_bootstrap_se": clustered_error,
    "majority_vote": majority,
}


def assert_close(found: Any, expected: Any, tolerance: float, name: str) -> None:
    """Values by name, in a list, or alone; None is equal to None only."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_close(found[key], value, tolerance, f"{name}.{key}")
    elif expected is None or found is None:
        assert found is expected, name
    else:
        assert found == pytest.approx(expected, abs=max(tolerance, 1e-12)), name


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_equals_the_published_value(case: Given) -> None:
    found = STATISTICS[case["statistic"]](case["input"])
    assert_close(found, case["expected"], case["tolerance"], case["name"])


def test_every_statistic_has_a_case() -> None:
    assert {case["statistic"] for case in CASES} == set(STATISTICS)
