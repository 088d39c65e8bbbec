"""Openings of a holdout: on record for every test that looks, and a warning once they are many."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

from alignment.models.regressions import HoldoutOpening
from alignment.regression.core import GatePolicy
from alignment.regression.queries.holdout_access import holdout_uses
from alignment.regression.services.policies import policy_revise
from labeling.models.people import User
from tests.factories.compared_runs import Compared
from tests.factories.rater_quality import polite
from tests.factories.regression_tests import DecidedTest, make_tested

pytestmark = pytest.mark.django_db


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    return make_tested(compared, split="holdout")


def opened(tested: DecidedTest, *, times: int) -> None:
    for _ in range(times):
        HoldoutOpening.objects.create(
            regression=tested.test, chat_set=tested.compared.chat_set, criterion=polite()
        )


def shown() -> str:
    context = {"openings": holdout_uses(criteria=[polite()])}
    return " ".join(render_to_string("alignment/regression/_holdout_opened.html", context).split())


def test_openings_are_counted_by_set_and_criterion(tested: DecidedTest) -> None:
    opened(tested, times=3)
    (found,) = holdout_uses(criteria=tested.compared.criteria)
    assert (found.chat_set, found.criterion, found.times, found.often) == ("calibration", "polite", 3, False)
    assert found.last == HoldoutOpening.objects.latest("at").at
    others = [row for row in tested.compared.criteria if row.key != "polite"]
    assert holdout_uses(criteria=others) == []
    assert holdout_uses(criteria=[polite()], chat_set=tested.compared.chat_set) == [found]


def test_from_the_fifth_on_the_pages_warn(tested: DecidedTest) -> None:
    opened(tested, times=4)
    assert "opened" not in shown()
    opened(tested, times=1)
    assert "The holdout of calibration was used 5 times for Polite" in shown()


def test_the_policy_says_from_when_on(tested: DecidedTest, lead_user: User) -> None:
    policy_revise(changes={"openings_warning": 2}, reason="Ours is small", by=lead_user)
    opened(tested, times=2)
    assert "used 2 times" in shown()
    (found,) = holdout_uses(criteria=[polite()], policy=GatePolicy(openings_warning=9))
    assert not found.often


def test_it_takes_two_queries_however_often(tested: DecidedTest, django_assert_num_queries) -> None:
    opened(tested, times=7)
    criteria = tested.compared.criteria
    with django_assert_num_queries(2):
        holdout_uses(criteria=criteria)


def test_the_page_of_the_criterion_and_of_the_test_warn(tested: DecidedTest, lead: Client) -> None:
    opened(tested, times=5)
    for page in ("/criteria/polite/", f"/regressions/{tested.test.pk}/"):
        assert "was used 5 times for Polite" in " ".join(lead.get(page).content.decode().split())
