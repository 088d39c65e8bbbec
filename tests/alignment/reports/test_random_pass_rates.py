"""Randomly sampled labels: the pass rate over all chats is PPI++, not Rogan-Gladen."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.test import Client

from alignment.comparison.core.codes import CriterionData, JudgeCode
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import SampleRequest
from alignment.reports.queries.reports import alignment_report
from alignment.statistics.agreement import Confusion
from alignment.statistics.prediction_powered import ppi_share
from alignment.statistics.prevalence_correction import corrected_share
from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.compared_runs import JUDGE, SPLITS, Compared, add_chats, text_of, urls
from tests.factories.label_samples import strip
from tests.factories.report_data import UNLABELLED, F, T, criterion, pairs, report, spec
from tests.factories.sampled_labels import answer, polite_of

CHATS = 300
SAMPLED = 200  # which of fewer chats are sampled can make a rate too wide to be given


def labelled(table: Confusion, *, more_true: int, more_false: int, **about: Any) -> CriterionData:
    """Randomly sampled labels with this table, and more chats with a verdict only."""
    human, judge = pairs(table.tp, table.fn, table.fp, table.tn)
    more = more_true + more_false
    data = criterion(
        human + [UNLABELLED] * more, judge + [T] * more_true + [F] * more_false, about=spec(**about)
    )
    return replace(data, at_random=True)


def rates_of(data: CriterionData) -> dict[str, Any]:
    found: dict[str, Any] = report(data)["criteria"][0]["pass_rate"]
    return found


def expected(table: Confusion, *, more_true: int, more_false: int) -> Any:
    people = np.array([1.0] * (table.tp + table.fn) + [0.0] * (table.fp + table.tn))
    said = np.repeat([1.0, 0.0, 1.0, 0.0], [table.tp, table.fn, table.fp, table.tn])
    return ppi_share(people, said, np.repeat([1.0, 0.0], [more_true, more_false]))


def test_random_labels_are_corrected_by_ppi() -> None:
    table = Confusion(76, 4, 6, 24)
    more = {"more_true": 700, "more_false": 200}
    assert rates_of(labelled(table, **more))["judge_corrected"] == expected(table, **more).as_json()


def test_a_pass_that_is_the_answer_false_is_the_other_share() -> None:
    table = Confusion(76, 4, 6, 24)
    more = {"more_true": 700, "more_false": 200}
    found = rates_of(labelled(table, **more, passes_when=False))["judge_corrected"]
    assert found == expected(table, **more).complement().as_json()


def test_abstentions_of_the_judge_are_covered_as_well() -> None:
    human, judge = pairs(76, 4, 6, 24)
    silent = [JudgeCode.REFUSED] * 10 + [JudgeCode.UNPARSED] * 80
    people, said = [*human, *([F] * 10), *([UNLABELLED] * 480)], [*judge, *silent, *([T] * 400)]
    found = rates_of(replace(criterion(people, said), at_random=True))["judge_corrected"]
    as_false = Confusion(76, 4, 6, 34)
    assert found == expected(as_false, more_true=400, more_false=80).as_json()


@pytest.mark.parametrize("table", [Confusion(99, 0, 1, 0), Confusion(15, 4, 0, 81), Confusion(80, 0, 0, 19)])
def test_below_twenty_labels_of_either_answer_it_stays_rogan_gladen(table: Confusion) -> None:
    found = report(labelled(table, more_true=900, more_false=10))["criteria"][0]
    assert found["corrected_by"] in ("rogan_gladen", None)


def test_below_sixty_labels_it_stays_rogan_gladen() -> None:
    table = Confusion(40, 2, 3, 14)
    found = rates_of(labelled(table, more_true=100, more_false=50))["judge_corrected"]
    assert found == corrected_share(table=table, judge_true=143, judge_n=209).as_json()


# ---------- through the product ----------


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """300 chats without a label on `polite`."""
    add_chats(compared, to=CHATS)
    strip(compared, range(1, CHATS + 1))
    return compared


def draw(
    compared: Compared, by: User, *, name: str = "Random", chats: int = SAMPLED, **changes: Any
) -> ChatSet:
    """Sample chats, of either verdict as many as there are; anna answers them."""
    scope = Scope(compared.chat_set, compared.run)
    polite = tuple(row for row in scope.criteria if row.key == "polite")
    suspect = round(chats * sum(not JUDGE["polite"](n) for n in range(1, CHATS + 1)) / CHATS)
    wish = SampleRequest(scope=scope, criteria=polite, name=name, chats=chats, suspect=suspect, seed=3)
    chat_set = create_sample(replace(wish, **changes), by=by).chat_set
    answer(chat_set, compared)
    return chat_set


@pytest.mark.django_db
def test_a_sample_that_ignores_the_verdict_is_random(bare: Compared, lead_user: User) -> None:
    draw(bare, lead_user)
    found = polite_of(bare)
    assert (found["corrected_by"], found["n"]) == ("ppi", SAMPLED)
    table = Confusion(**found["confusion"])
    said = sum(JUDGE["polite"](n) for n in range(1, CHATS + 1))
    more = {"more_true": said - table.judge_true, "more_false": CHATS - said - table.judge_false}
    assert found["pass_rate"]["judge_corrected"] == expected(table, **more).as_json()


@pytest.mark.django_db
def test_the_page_says_how_a_rate_was_corrected_and_whose_interval_is_narrower(
    bare: Compared, lead_user: User, lead: Client
) -> None:
    draw(bare, lead_user)
    shown = text_of(lead.get(urls(bare)["report"]))
    assert "<td>PPI++, random labels</td> <td>corrected</td>" in " ".join(shown.split())


@pytest.mark.django_db
def test_one_label_that_somebody_chose_is_enough_to_be_no_random_sample(
    compared: Compared, lead_user: User
) -> None:
    add_chats(compared, to=CHATS)
    strip(compared, range(2, CHATS + 1))
    draw(compared, lead_user)
    assert polite_of(compared)["corrected_by"] == "rogan_gladen"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("unlike", "method"),
    [
        ({"minimum": 2}, "weighting"),
        ({"rule": AllocationRule.EQUAL}, "weighting"),
        ({"strata": []}, "rogan_gladen"),
    ],
)
def test_a_sample_with_unequal_probabilities_is_not_random(
    bare: Compared, lead_user: User, unlike: dict[str, Any], method: str
) -> None:
    chat_set = draw(bare, lead_user)
    chat_set.sampling = (chat_set.sampling or {}) | unlike
    chat_set.save()
    assert polite_of(bare)["corrected_by"] == method


@pytest.mark.django_db
def test_a_sample_from_part_of_the_chats_is_not_random(compared: Compared, lead_user: User) -> None:
    add_chats(compared, to=CHATS)
    strip(compared, range(2, CHATS + 1))  # chat 1 has its label, and so is not sampled
    draw(compared, lead_user)
    strip(compared, range(1, 2))
    assert polite_of(compared)["corrected_by"] == "rogan_gladen"


@pytest.mark.django_db
def test_a_sample_from_a_run_over_fewer_chats_is_not_random(bare: Compared, lead_user: User) -> None:
    draw(bare, lead_user)
    add_chats(bare, to=CHATS + 100)
    strip(bare, range(CHATS + 1, CHATS + 101))
    assert polite_of(bare)["corrected_by"] == "rogan_gladen"


@pytest.mark.django_db
def test_a_sample_from_one_split_is_random_for_that_split_alone(bare: Compared, lead_user: User) -> None:
    scope = Scope(bare.chat_set, bare.run, "dev")
    dev = [n for n in range(1, CHATS + 1) if SPLITS[n % 4] == "dev"]
    chats = 120
    suspect = round(chats * sum(not JUDGE["polite"](n) for n in dev) / len(dev))
    draw(bare, lead_user, scope=scope, chats=chats, suspect=suspect)
    reports = (alignment_report(Scope(bare.chat_set, bare.run, split))["criteria"] for split in ("", "dev"))
    methods = [next(row["corrected_by"] for row in rows if row["key"] == "polite") for rows in reports]
    assert methods == ["rogan_gladen", "ppi"]
