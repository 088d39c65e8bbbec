"""Versions of guidelines and of questions."""

from dataclasses import replace

from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.rubric.services.guidelines import CriterionWords, criterion_write, guideline_write
from tests.factories.labelling_job import Desk


def write(desk: Desk, text: str, *, base: int, by: User | None = None) -> RubricGuideline:
    return guideline_write(rubric=desk.rubric, text=text, reason="Asked for", base=base, by=by)


def words(criterion: Criterion) -> CriterionWords:
    newest = criterion.versions.latest("number")
    return CriterionWords(newest.question, newest.definition, newest.guideline)


def reword(criterion: Criterion, *, base: int = 1, **texts: str) -> CriterionVersion:
    return criterion_write(
        criterion=criterion, words=replace(words(criterion), **texts), reason="Asked for", base=base, by=None
    )
