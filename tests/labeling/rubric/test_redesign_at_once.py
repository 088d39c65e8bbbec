"""Redesigns that meet each other, or raters who submit at the same moment."""

import pytest

from common.problems import FieldProblem
from labeling.models.labels import Consensus, Label
from labeling.models.rubric import Criterion, CriterionLineage
from labeling.rating.services.submission import assignment_submit
from tests.factories.api_calls import at_once
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.factories.redesigns import KEYS, MERGE, SPLIT, carried_out, give, values

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2, keys=KEYS)


def test_of_two_leads_who_redesign_the_same_criterion_one_is_refused(desk: Desk) -> None:
    def lead(number: int) -> str:
        try:
            carried_out((SPLIT, MERGE)[number])
        except FieldProblem as problem:
            return problem.message
        return "done"

    said = at_once(lead, times=2)
    assert sorted(said) == ["done", "polite is already retired"]
    assert CriterionLineage.objects.values("kind").distinct().count() == 1


def test_raters_who_submit_meanwhile_lose_nothing_and_nobody_waits_for_ever(desk: Desk) -> None:
    give(desk.chats[2], desk.criteria[0], desk.raters[1], True)
    held = [desk.taken(rater) for rater in desk.raters]
    for assignment in held:
        answer_all(assignment)

    def work(number: int) -> None:
        if number == 2:
            carried_out(MERGE)
        else:
            assignment_submit(assignment=held[number], rater=desk.raters[number])

    at_once(work, times=3)
    assert Criterion.objects.filter(state="active").count() == 2
    assert Label.objects.filter(criterion__key="correct", state="submitted").count() == 2
    # What was submitted in time has carried over, the rest stays where it was given.
    for key, kept in (("polite", values("polite")), ("kind", values("kind"))):
        counted = Consensus.objects.filter(criterion__key=key).count()
        assert counted == len({chat for chat, _ in kept}), key
    assert values("kind").items() <= values("polite").items()
