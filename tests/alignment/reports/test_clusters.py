"""Chats that belong together: a cluster counts as one unit in every interval of a criterion."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from alignment.comparison.core.codes import CriterionData, HumanCode, ReportData, cluster_numbers
from alignment.comparison.queries.scope import Scope
from alignment.prompts.queries.version_metrics import version_metrics
from alignment.reports.core import build_report
from alignment.reports.core.judge_side import NAMES
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.reports import alignment_report
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared
from tests.factories.prompt_versions import a_version, run_of
from tests.factories.rater_quality import polite
from tests.factories.report_data import criterion, pairs
from tests.files import write_jsonl

HUMAN = ("krippendorff_alpha", "ceiling", "accuracy_ceiling")


def entry(data: CriterionData, clusters: np.ndarray | None = None) -> dict[str, Any]:
    report = ReportData([str(n) for n in range(len(data.human))], (data,), clusters=clusters)
    (found,) = build_report(report, policy=StatusPolicy(), seed=1)["criteria"]
    return dict(found)


def rows(copies: int) -> CriterionData:
    """100 chats of two raters, each `copies` times."""
    human, judge = pairs(50, 8, 6, 36)
    counts = [[2, 0, 0] if code == 0 else [0, 2, 0] for code in human]
    counts[3] = counts[60] = counts[70] = [1, 1, 0]
    return criterion(human * copies, judge * copies, counts=counts * copies)


def width(estimate: dict[str, Any]) -> float:
    return float(estimate["high"] - estimate["low"])


def test_copies_of_chats_in_one_cluster_know_no_more_than_one_of_each() -> None:
    once, apart = entry(rows(1)), entry(rows(3))
    together = entry(rows(3), np.tile(np.arange(100), 3))
    for name in NAMES:
        assert together[name]["value"] == pytest.approx(once[name]["value"])
        assert width(apart[name]) < 0.7 * width(once[name])
        assert 0.95 * width(once[name]) < width(together[name]) < 1.2 * width(once[name]), name
    for name in HUMAN:
        one, same = once["human"][name], together["human"][name]
        assert 0.85 * width(one) < width(same) < 1.15 * width(one), name
    for name in ("human", "judge"):
        assert width(together["pass_rate"][name]) > 1.4 * width(apart["pass_rate"][name])
    assert (together["n"], together["confusion"]) == (apart["n"], apart["confusion"])


def with_unlabelled(copies: int, *, at_random: bool) -> CriterionData:
    """110 labelled chats and 400 with a verdict only, each `copies` times."""
    human, judge = pairs(76, 4, 6, 24)
    human, judge = [*human, *[HumanCode.UNLABELLED] * 400], [*judge, *[HumanCode.TRUE] * 300]
    judge += [HumanCode.FALSE] * 100
    return replace(criterion(human * copies, judge * copies), at_random=at_random)


@pytest.mark.parametrize("method", ["ppi", "rogan_gladen"])
def test_a_corrected_rate_knows_no_more_from_copies_than_from_one_of_each(method: str) -> None:
    once, apart, alone, together = (
        entry(with_unlabelled(copies, at_random=method == "ppi"), clusters)
        for copies, clusters in (
            (1, None),
            (3, None),
            (1, np.arange(510)),
            (3, np.tile(np.arange(510), 3)),
        )
    )
    assert {one["corrected_by"] for one in (once, apart, alone, together)} == {method}
    single, many, each, grouped = (
        one["pass_rate"]["judge_corrected"] for one in (once, apart, alone, together)
    )
    assert each == single
    assert grouped["value"] == pytest.approx(many["value"])
    assert width(many) < 0.7 * width(single)
    assert 0.95 * width(single) < width(grouped) < 1.1 * width(single)


def test_chats_whose_answers_are_not_alike_lose_little_by_their_clusters() -> None:
    random = np.random.default_rng(4)
    human = (random.random(400) < 0.4).astype(np.int8)
    judge = np.where(random.random(400) < 0.9, human, 1 - human).astype(np.int8)
    data = replace(rows(4), human=human, judge=judge)
    apart, together = entry(data), entry(data, random.permutation(np.repeat(np.arange(200), 2)))
    for name in ("accuracy", "tpr", "tnr", "balanced_accuracy", "precision", "kappa"):
        assert 0.9 * width(apart[name]) < width(together[name]) < 1.3 * width(apart[name]), name


def test_chats_without_a_cluster_stand_alone() -> None:
    assert cluster_numbers(["", "ann", "", "ann"]).tolist() == [0, 1, 2, 1]  # type: ignore[union-attr]
    alone = np.arange(100)
    plain, clustered = entry(rows(1)), entry(rows(1), alone)
    for name in ("accuracy", "tpr", "tnr", "balanced_accuracy"):
        assert clustered[name]["low"] == pytest.approx(plain[name]["low"])


def test_precision_near_one_is_as_uncertain_with_each_chat_in_a_cluster_as_without() -> None:
    data = criterion(*pairs(27, 1, 1, 11))
    plain, clustered = entry(data), entry(data, np.arange(40))
    assert clustered["precision"]["high"] == pytest.approx(plain["precision"]["high"])
    shared = entry(data, np.arange(40) // 2)
    assert shared["precision"]["high"] >= plain["precision"]["high"]


def test_few_clusters_have_no_bootstrap_interval_and_count_as_so_many_answers() -> None:
    few = entry(rows(1), np.arange(100) % 9)
    assert few["kappa"]["low"] is None
    assert width(few["accuracy"]) > 0.4
    assert few["status"] == "not_aligned"


@pytest.mark.django_db
def test_a_later_import_of_clusters_is_seen_by_report_and_version(
    compared: Compared, lead_user: User, lead: Client, tmp_path: Path
) -> None:
    Criterion.objects.update(labels_seq=1)  # as after labelling
    version = a_version(polite())
    run = run_of(version, compared.chat_set, wrong=6)

    def figures() -> tuple[Any, Any]:
        entries = alignment_report(Scope(compared.chat_set, run, "dev"))["criteria"]
        (found,) = [one for one in entries if one["key"] == "polite"]
        metrics = version_metrics([polite()], user=lead_user)
        (dev,) = [one for of in metrics.values() for one in of.rows if one.split == "dev"]
        return found["balanced_accuracy"], dev.figures["balanced_accuracy"]

    before, of_version = figures()
    assert before == of_version
    chats = Chat.objects.order_by("pk").values("external_id", "messages")
    lines = [
        {"id": chat["external_id"], "messages": chat["messages"], "cluster": f"customer-{number // 6}"}
        for number, chat in enumerate(chats)
    ]
    chats_import(path=write_jsonl(tmp_path / "clusters.jsonl", *lines))
    after, of_version = figures()
    assert after == of_version
    assert after["value"] == before["value"] and width(after) > width(before)
    page = lead.get(reverse("alignment:report_run", args=[run.pk])).content.decode()
    assert "40 chats belong to 7 clusters: intervals count clusters instead of chats" in page
