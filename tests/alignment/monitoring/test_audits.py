"""The random audit: labels joined by night into stored counts, and the rates that they correct."""

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.models.audits import AuditCount, AuditNight
from alignment.monitoring.core.audits import (
    AuditCell,
    AuditGroup,
    JudgedStratum,
    PartAudit,
    of_topic,
    part_rates,
    zeroed,
)
from alignment.monitoring.core.corrected_rates import Rate
from alignment.monitoring.core.weighted_rates import StratumSums, weighted_rate
from alignment.monitoring.services import audits_work
from evaluation.models.judges import Judge
from labeling.models.chats import ChatSetMember
from labeling.models.labels import Consensus
from labeling.models.people import Role
from labeling.models.rubric import Rubric
from tests.factories.audited_nights import MONDAY, a_night, audited_night, judged_chats, labelled
from tests.factories.production import Judged, production_day
from tests.factories.production_samples import Judge as Errors
from tests.factories.production_samples import Population, Topic
from tests.factories.rows import make_rubric, make_set, make_user
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite")


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


def signed_in(role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role.value, role))
    return client


def ppi(human: Any, verdicts: Any, share: float) -> tuple[float, float]:
    """PPI++ of a simple random sample in numpy: the rate and lambda."""
    weight = np.cov(human, verdicts, ddof=0)[0, 1] / np.var(verdicts)
    return float(human.mean() + weight * (share - verdicts.mean())), float(weight)


HUMAN = np.array([0] * 12 + [1] * 48 + [1] * 4 + [0] * 16)
VERDICTS = np.array([1] * 60 + [0] * 20)


def first_point(client: Client) -> dict[str, Any]:
    found = client.get(reverse("api_monitoring")).json()
    point: dict[str, Any] = found["criteria"][0]["points"][0]
    return point


def test_labels_of_the_random_audit_correct_the_rate_as_the_formula_says(
    rubric: Rubric, judge: Judge
) -> None:
    a_night(rubric, judge)
    client = signed_in(Role.LEAD)
    assert first_point(client)["corrected"]["value"] is None
    audits_work()
    point = first_point(client)
    rate, weight = ppi(HUMAN, VERDICTS, 0.75)
    assert point["uncorrected"]["value"] == 0.75
    assert point["corrected"]["method"] == "ppi"
    assert point["corrected"]["value"] == pytest.approx(rate)
    assert point["random_audit"]["weight"] == pytest.approx(weight)
    page = client.get(reverse("api_monitoring_criterion", args=["polite"])).json()
    assert page["points"][0]["audit_labels_alone"]["value"] == pytest.approx(HUMAN.mean())
    assert point["corrected"]["labels"] == 80
    assert point["corrected"]["low"] < rate < point["corrected"]["high"]
    assert point["curated_labels"]["reason"] == "no_labels"


def test_dimensions_and_session_scores_are_corrected_where_all_of_them_is_labelled(
    rubric: Rubric, judge: Judge
) -> None:
    a_night(rubric, judge)
    client = signed_in(Role.LEAD)
    before = client.get(reverse("api_monitoring")).json()["session_score"]["points"][0]["corrected"]
    assert (before["value"], before["reason"]) == (None, "needs_audit")
    audits_work()
    found = client.get(reverse("api_monitoring")).json()
    rate, _ = ppi(HUMAN, VERDICTS, 0.75)
    for line in (found["session_score"], found["dimensions"][0]):
        assert line["points"][0]["corrected"]["value"] == pytest.approx(rate)


def test_a_session_score_needs_every_criterion_labelled() -> None:
    rubric = make_rubric("polite", "solved")
    _, chats = a_night(rubric, make_judge(rubric))
    Consensus.objects.filter(criterion__key="solved", chat__in=chats[:70]).update(state="unresolved")
    audits_work()
    counted = {row.part: sum(cell[-1] for cell in row.cells) for row in AuditCount.objects.all()}
    ids = {row.key: row.pk for row in rubric.criteria.all()}
    assert counted[f"criterion:{ids['polite']}"] == 80
    assert counted[f"criterion:{ids['solved']}"] == counted["score"] == 10


def test_pages_and_files_name_the_method_of_each_rate(rubric: Rubric, judge: Judge) -> None:
    a_night(rubric, judge)
    audits_work()
    client = signed_in(Role.LEAD)
    page = client.get(reverse("monitoring:criterion", args=["polite"])).content.decode()
    for words in (
        "Corrected with the random audit (PPI++)",
        "Judge&#x27;s rate, uncorrected",
        "Human labels of the audit alone",
        "No labelled chats",
    ):
        assert words in page, words
    overview = client.get(reverse("monitoring:overview")).content.decode()
    assert "Session score, corrected" in overview
    rows = client.get(reverse("monitoring:criterion_csv", args=["polite"])).content.decode().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["criterion", "topic"]
    assert all(",ppi,80," in row for row in rows[1:])


def test_authors_never_get_labels_of_holdout_chats_also_of_those_that_became_it_later(
    rubric: Rubric, judge: Judge
) -> None:
    _, chats = a_night(rubric, judge)
    secret = make_set(rubric, name="secret")
    audits_work()
    lead, author = signed_in(Role.LEAD), signed_in(Role.AUTHOR)
    assert first_point(author)["corrected"] == first_point(lead)["corrected"]
    for position, chat in enumerate(chats[:15], 1):
        ChatSetMember.objects.create(chat_set=secret, chat=chat, split="holdout", position=position)
    # Not counted anew yet: the night has no labels for authors.
    assert first_point(author)["corrected"]["labels"] == 0
    audits_work()
    assert first_point(author)["random_audit"]["labels"] == 65
    assert first_point(lead)["random_audit"]["labels"] == 80
    assert first_point(author)["corrected"]["value"] != first_point(lead)["corrected"]["value"]


def test_a_night_is_counted_again_when_its_labels_change_and_else_left_alone(
    rubric: Rubric, judge: Judge
) -> None:
    _, chats = a_night(rubric, judge)
    audits_work()
    first = AuditNight.objects.get().pk
    audits_work()
    assert AuditNight.objects.get().pk == first
    # A label more and another less: as many of each as before.
    Consensus.objects.filter(chat=chats[0]).update(state="true")
    Consensus.objects.filter(chat=chats[20]).update(state="false")
    audits_work()
    assert AuditNight.objects.get().pk != first


def test_a_night_without_labels_among_others_leaves_the_week_uncorrected_and_says_so(
    rubric: Rubric, judge: Judge
) -> None:
    a_night(rubric, judge)
    production_day(MONDAY + timedelta(days=1), {"refund": Judged(500, 90, 10)}, judge=judge, rubric=rubric)
    audits_work()
    point = first_point(signed_in(Role.LEAD))
    assert point["random_audit"]["reason"] == "unlabelled_group"


def test_a_topic_is_corrected_as_a_part_of_the_whole_sample(rubric: Rubric, judge: Judge) -> None:
    run = production_day(
        MONDAY, {"refund": Judged(1000, 300, 100), "tip": Judged(400, 150, 50)}, judge=judge, rubric=rubric
    )
    refund = judged_chats(run, passed=True)[:60] + judged_chats(run, passed=False)[:20]
    tip = judged_chats(run, passed=True, topic="tip")[:30] + judged_chats(run, passed=False, topic="tip")[:10]
    audited_night(run, MONDAY, refund + tip)
    labelled(rubric, refund, HUMAN)
    labelled(rubric, tip, [1] * 30 + [0] * 10)
    audits_work()
    answer = signed_in(Role.LEAD).get(reverse("api_monitoring_criterion", args=["polite"])).json()
    topics = {one["key"]: one["points"][0] for one in answer["topics"]}
    # A domain's rate is a ratio: with these 80 of 120 labels its numerator and denominator are corrected.
    assert topics["refund"]["corrected"]["method"] == "ppi"
    assert topics["refund"]["corrected"]["labels"] == 80
    assert topics["refund"]["corrected"]["value"] == pytest.approx(0.65, abs=0.02)
    assert topics["tip"]["random_audit"]["reason"] == "too_few_labels"
    assert topics["tip"]["uncorrected"]["value"] == 0.75


def test_variants_are_corrected(rubric: Rubric, judge: Judge) -> None:
    a_night(rubric, judge, experiment="short", variant="a")
    a_night(rubric, judge, MONDAY + timedelta(days=1), experiment="short", variant="b")
    audits_work()
    answer = signed_in(Role.LEAD).get(reverse("api_monitoring_criterion", args=["polite"])).json()
    rates = {one["variant"]: one["corrected"] for one in answer["variants"]}
    rate, _ = ppi(HUMAN, VERDICTS, 0.75)
    for one in rates.values():
        assert (one["method"], one["labels"]) == ("ppi", 80)
        assert one["value"] == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize("role", [Role.LEAD, Role.AUTHOR])
def test_pages_take_the_same_queries_for_more_nights(rubric: Rubric, judge: Judge, role: Role) -> None:
    client, taken = signed_in(role), []
    for number in range(2):
        a_night(rubric, judge, MONDAY + timedelta(days=number))
        audits_work()
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse("monitoring:overview"))
        taken.append(len(queries))
    assert taken[0] == taken[1]


# ---------- simulation: the rate of a topic, with failures oversampled


NIGHT = [Topic(6000, 300, 0.92), Topic(3000, 200, 0.80), Topic(1000, 150, 0.70)]


def label(number: int, suspect: bool, row: Any) -> AuditCell:
    human_a, human_y, judge_a, judge_y = map(float, row)
    return AuditCell(1, MONDAY, number, "", "", suspect, human_a, human_y, judge_a, judge_y, 1)


def topic_rate(population: Population, rng: np.random.Generator, *, topic: int) -> Rate:
    """A night's judged sample, an audit of 150 of it and 80 failures more: the corrected rate of a topic."""
    judged, rows = [], []
    for number, (size, chats) in enumerate(zip(population.topics, population.chats, strict=True)):
        drawn = chats[rng.choice(size.size, size.sampled, replace=False)]
        sums = StratumSums.of_chats(size=size.size, answers=drawn[:, 2], passes=drawn[:, 3])
        judged.append(JudgedStratum(1, MONDAY, number, sums))
        rows += [(number, bool(row[2] > row[3]), row) for row in drawn]
    audit = set(rng.choice(len(rows), 150, replace=False).tolist())
    missed = [at for at, (_, suspect, _) in enumerate(rows) if suspect and at not in audit]
    chosen = audit | set(rng.choice(missed, min(80, len(missed)), replace=False).tolist())
    cells = [label(*rows[at]) for at in chosen]
    groups = [AuditGroup(1, MONDAY, number, suspect, 1) for number, suspect, _ in rows]
    strata = zeroed(judged, topic=topic)
    return part_rates(
        weighted_rate([judged[topic].sums]),
        strata,
        curated=None,
        audit=PartAudit.of(groups, cells),
        inside=of_topic(topic),
    ).ppi


def check_topic(*, draws: int, seed: int) -> float:
    """Share of intervals with the truth; the mean must be within 3 standard errors of it."""
    population = Population.of(NIGHT, Errors(0.94, 0.80), seed=seed)
    truth = float(population.chats[0][:, 1].mean())
    rng = np.random.default_rng(seed)
    found = [topic_rate(population, rng, topic=0) for _ in range(draws)]
    estimates = [one.estimate for one in found if one.estimate.value is not None and one.estimate.interval]
    assert len(estimates) > 0.98 * draws
    values = np.array([one.value for one in estimates], dtype=float)
    assert abs(values.mean() - truth) <= 3 * values.std(ddof=1) / math.sqrt(len(values))
    held = [one.interval.low <= truth <= one.interval.high for one in estimates if one.interval]
    return float(np.mean(held))


def test_the_corrected_rate_of_a_topic_is_unbiased_with_oversampled_failures() -> None:
    assert check_topic(draws=200, seed=4) >= 0.90


@pytest.mark.heavy
def test_intervals_of_topics_hold_on_the_mean_over_2000_draws() -> None:
    found = [check_topic(draws=2000, seed=seed) for seed in (4, 5, 6)]
    assert 0.93 <= np.mean(found) <= 0.97, found
