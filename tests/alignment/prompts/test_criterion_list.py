"""The list of criteria: critical and worst first, with disagreements, cost and what waits."""

from typing import cast

import pytest
from django.core.cache import caches
from django.test import Client

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment
from evaluation.models.runs import ModelCall, Unit, UnitCall
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_test, a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

LIST = "/criteria/"


def test_the_list_shows_what_each_champion_was_measured_to_be(compared: Compared, author: Client) -> None:
    champion = a_version(polite())
    promote(champion)
    run = run_of(champion, compared.chat_set)
    test = a_test(a_version(polite()), compared.run)
    shown = words_of(author.get(LIST))
    assert "v1" in shown and f"run {run.pk}, calibration, dev, 20 chats" in shown
    assert "v2 running" in shown
    assert f"Open test {test.pk}" in shown


def test_the_list_is_sorted_critical_and_worst_first(compared: Compared, author: Client) -> None:
    measured = {"polite": 3, "welcome": 10}  # the judge is wrong on every n-th chat
    for key, wrong in measured.items():
        promote(version := a_version(Criterion.objects.get(key=key)))
        run_of(version, compared.chat_set, wrong=wrong)
    rows = author.get(LIST).context["rows"]
    assert [one.criterion.key for one in rows] == ["polite", "welcome", "wrong_fact"]
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    rows = author.get(LIST).context["rows"]
    assert [one.criterion.key for one in rows] == ["wrong_fact", "polite", "welcome"]
    assert "Wrong fact critical" in words_of(author.get(LIST))


def test_the_list_counts_open_disagreements_that_the_user_may_see(compared: Compared, author: Client) -> None:
    promote(version := a_version(polite()))
    misalignments_refresh(run_of(version, compared.chat_set, wrong=5))
    hidden = Misalignment.objects.filter(chat__memberships__split="holdout").count()
    found = Misalignment.objects.count()
    assert 0 < hidden < found
    listed = {one.criterion.key: one for one in author.get(LIST).context["rows"]}
    assert (listed["polite"].disagreements, listed["welcome"].disagreements) == (found - hidden, 0)


def test_the_list_prices_a_criterion_by_its_share_of_the_calls(compared: Compared, author: Client) -> None:
    promote(version := a_version(polite()))
    run = run_of(version, compared.chat_set)
    assert listed_cost(author) is None
    for chat, cost in ((compared.chat(1), "0.010"), (compared.chat(2), "0.030")):
        call = ModelCall.objects.create(
            key=f"{chat.pk}", role="direct", settings={}, parts=[], cost_usd=cost, state="answered"
        )
        unit = Unit.objects.create(run=run, chat=chat, group=0, state="done")
        UnitCall.objects.create(unit=unit, call=call, role="direct", step=0, reused=True)
    caches["documents"].clear()
    assert listed_cost(author) == pytest.approx(20.0)


def listed_cost(client: Client) -> float | None:
    rows = client.get(LIST).context["rows"]
    (cost,) = [one.cost for one in rows if one.criterion.key == "polite"]
    return cast("float | None", cost)


def test_retired_criteria_are_folded_below_the_list(compared: Compared, author: Client) -> None:
    assert "retired criteri" not in words_of(author.get(LIST))
    Criterion.objects.filter(key="polite").update(state="retired")
    answer = author.get(LIST)
    assert "polite" not in [row.criterion.key for row in answer.context["rows"]]
    assert [row.criterion.key for row in answer.context["retired"]] == ["polite"]
    assert "1 retired criterion" in words_of(author.get(LIST))
