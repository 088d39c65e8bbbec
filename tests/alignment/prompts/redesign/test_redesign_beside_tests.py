"""A redesign and a regression test begun at the same moment: whoever comes second is refused."""

from collections.abc import Callable
from threading import Thread

import pytest
from django.db import connection, connections, transaction
from pytest_django import Settings

from alignment.models.regressions import RegressionTest
from alignment.prompts.redesign.services import redesign_carry_out
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.tests import RegressionChoice, prompt_test_start
from common.problems import FieldProblem, InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from labeling.rubric.core.redesign import Redesign
from tests.factories.runs import point_at, workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def golden(settings: Settings) -> ChatSet:
    point_at(settings, "http://127.0.0.1:9/v1")
    return workspace("polite", chats=2)


@pytest.fixture
def version(golden: ChatSet) -> PromptVersion:
    criterion = Criterion.objects.get()
    champions_ensure(criteria=[criterion], by=None)
    return prompt_version_add(criterion=criterion, text="# Objective\nIs it polite?")


def begun(golden: ChatSet, version: PromptVersion) -> None:
    choice = RegressionChoice(golden, "", JudgeSpec("direct"), policy_in_force(), on_worker=False)
    prompt_test_start(candidate=version, choice=choice)


def redesigned() -> None:
    redesign_carry_out(redesign=Redesign("retire", ("polite",)), reason="Unused", by=None)


def refusal_beside(first: Callable[[], None], second: Callable[[], None]) -> str:
    """The refusal of the second one, which begins before the first is committed."""
    refused: list[str] = []

    def work() -> None:
        try:
            second()
        except (FieldProblem, InputProblem) as problem:
            refused.append(str(problem))
        finally:
            connections.close_all()

    other = Thread(target=work)
    with transaction.atomic():
        first()
        other.start()
        other.join(1)  # as far as it gets without what the first holds
    other.join()
    return " ".join(refused)


def test_a_test_that_is_being_started_is_seen_by_a_redesign(golden: ChatSet, version: PromptVersion) -> None:
    policy_in_force()
    refused = refusal_beside(lambda: begun(golden, version), redesigned)
    assert "is open: wait for it" in refused
    assert Criterion.objects.get().state == "active"


def test_a_criterion_that_is_being_retired_is_not_tested(golden: ChatSet, version: PromptVersion) -> None:
    policy_in_force()
    refused = refusal_beside(redesigned, lambda: begun(golden, version))
    # SQLite lets the second begin after the first only; PostgreSQL refuses it at the lock.
    begins_later = connection.vendor == "sqlite"
    assert ("has no active criterion" if begins_later else "is no longer an active criterion") in refused
    assert not RegressionTest.objects.exists() and not Run.objects.exists()
