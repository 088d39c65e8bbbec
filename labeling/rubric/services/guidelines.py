"""Texts for raters: a rubric's guideline and a criterion's texts, each change a new version with a reason."""

from dataclasses import asdict, dataclass

from django.db import transaction

from common.problems import FieldProblem
from labeling.consensus.services import consensus_follow
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.people.services.audit import audit
from labeling.rubric.core.rubric import version_hash
from labeling.rubric.queries.guidelines import guideline_in_force


class EditConflict(Exception):
    """Somebody else wrote a newer version than the one this change started from; `newest` is it."""

    def __init__(self, newest: RubricGuideline | CriterionVersion | None) -> None:
        number = newest.number if newest else 0
        super().__init__(f"Version {number} was written meanwhile. Nothing was saved.")
        self.newest = newest


@dataclass(frozen=True, slots=True)
class CriterionWords:
    """All texts of a criterion version; guideline and examples are for raters only."""

    question: str
    definition: str
    guideline: str = ""
    true_example: str = ""
    false_example: str = ""


@transaction.atomic
def guideline_write(*, rubric: Rubric, text: str, reason: str, base: int, by: User | None) -> RubricGuideline:
    """The rubric's guideline with this text: a new version, or the newest one where the text is the same.

    `base` is the number of the version that the writer started from, 0 where there was none.

    Raises EditConflict where another version is the newest by now, FieldProblem for a missing text or reason.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=rubric.pk)  # one writer at a time
    newest = guideline_in_force(rubric_id=rubric.pk)
    if newest is not None and newest.text == text:
        return newest
    if base != (newest.number if newest else 0):
        raise EditConflict(newest)
    _demand(text=text, reason=reason)
    row = RubricGuideline.objects.create(
        rubric=rubric, number=base + 1, text=text, reason=reason.strip(), created_by=by
    )
    audit(
        actor=by, verb="guideline written", obj=row, rubric=rubric.name, number=row.number, reason=row.reason
    )
    return row


@transaction.atomic
def criterion_write(
    *, criterion: Criterion, words: CriterionWords, reason: str, base: int, by: User | None
) -> CriterionVersion:
    """The criterion with these texts: a new version, or the newest one where nothing differs.

    What passes and whether an answer may be "not applicable" stay as they are. Guideline and examples are no
    part of the content hash: what the judge is asked, and who it is, does not change with them.

    Raises EditConflict where another version is the newest by now, FieldProblem for a missing text or reason.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)  # one writer at a time
    newest = criterion.versions.latest("number")
    given = asdict(words)
    if all(getattr(newest, name) == text for name, text in given.items()):
        return newest
    if base != newest.number:
        raise EditConflict(newest)
    _demand(question=words.question, definition=words.definition, reason=reason)
    rule = {"passes_when": newest.passes_when, "allow_na": newest.allow_na}
    row = CriterionVersion.objects.create(
        criterion=criterion,
        number=base + 1,
        content_hash=version_hash(question=words.question, definition=words.definition, **rule),
        reason=reason.strip(),
        created_by=by,
        **given,
        **rule,
    )
    consensus_follow(version=row)
    asks_anew = row.content_hash != newest.content_hash
    audit(
        actor=by,
        verb="criterion written",
        obj=row,
        criterion=criterion.key,
        number=row.number,
        reason=row.reason,
        asks_anew=asks_anew,
    )
    return row


def _demand(**texts: str) -> None:
    for field, text in texts.items():
        if not text.strip():
            raise FieldProblem(field, "is missing")
