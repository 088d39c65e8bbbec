"""The direct run to which a debate is compared: same judge, all of its chats, finished."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from evaluation.models.runs import Run, RunChat
from evaluation.runs.queries.direct_runs import direct_run_of
from tests.factories.rows import make_set
from tests.factories.runs import always, answering, chats_of, evaluate, rubric_of, the_run

pytestmark = pytest.mark.django_db(transaction=True)


def run_with(engine: str, *more: str) -> Run:
    assert evaluate("--set", "calibration", "--engine", engine, *more).code == 0
    return the_run()


@pytest.fixture
def debate(settings: Settings) -> Iterator[Run]:
    """A finished debate of two criteria over four chats; further runs get the same answers."""
    make_set(rubric_of("polite", "exact"), *chats_of(4), name="calibration")
    with answering(settings, always(True)):
        yield run_with("debate")


def test_it_is_the_newest_finished_one(debate: Run) -> None:
    assert direct_run_of(debate) is None
    first = run_with("direct")
    assert direct_run_of(debate) == first
    newer = run_with("direct", "--replicate", "1")
    with CaptureQueriesContext(connection) as queries:
        assert direct_run_of(debate) == newer
    assert len(queries) == 2


def test_auto_is_compared_where_it_debates(settings: Settings) -> None:
    rubric = rubric_of("fact", tier="context")
    make_set(rubric, *chats_of(2), name="calibration")
    with answering(settings, always(True)):
        auto, direct = run_with("auto"), run_with("direct")
    assert direct_run_of(auto) == direct


@pytest.mark.parametrize("more", [("--model", "another-model"), ("--samples", "3"), ("--knowledge", "none")])
def test_another_judge_is_not_compared(debate: Run, more: tuple[str, ...]) -> None:
    run_with("direct", *more)
    assert direct_run_of(debate) is None


def test_a_run_on_fewer_chats_is_not_compared(debate: Run) -> None:
    direct = run_with("direct")
    RunChat.objects.filter(run=direct).first().delete()  # type: ignore[union-attr]
    assert direct_run_of(debate) is None


@pytest.mark.parametrize(
    "fields", [{"state": Run.State.PAUSED}, {"state": Run.State.CANCELLED}, {"purpose": Run.Purpose.TRY}]
)
def test_an_unfinished_run_or_a_try_is_not_compared(debate: Run, fields: dict[str, str]) -> None:
    Run.objects.filter(pk=run_with("direct").pk).update(**fields)
    assert direct_run_of(debate) is None


def test_a_direct_run_itself_is_compared_with_none(debate: Run) -> None:
    run_with("direct")
    assert direct_run_of(run_with("direct", "--replicate", "1")) is None
