"""Texts and rules for raters; each change of a guideline or criterion text makes a version with a reason."""

from dataclasses import asdict, dataclass

from django.db import transaction

from common.problems import FieldProblem
from labeling.consensus.services.consensus import consensus_follow
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.people.services.audit import audit
from labeling.rubric.core.rubric import version_hash
from labeling.rubric.queries.guidelines import guideline_in_force


class EditConflict(Exception):
    """Another author saved a newer version than the one that was edited; `newest` is that version."""

    def __init__(self, newest: RubricGuideline | CriterionVersion | None) -> None:
        number = newest.number if newest else 0
        super().__init__(f"Version {number} was saved first. Your text is not saved.")
        self.newest = newest


@dataclass(frozen=True, slots=True)
class CriterionWords:
    """All texts of a criterion version; only raters read guideline and examples."""

    question: str
    definition: str
    guideline: str = ""
    true_example: str = ""
    false_example: str = ""


@transaction.atomic
def guideline_write(*, rubric: Rubric, text: str, reason: str, base: int, by: User | None) -> RubricGuideline:
    """Save a rubric's guideline as a new version; return the newest one where the text is the same.

    `base` is the number of the version that was edited, 0 for none.

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
    """Save a criterion's texts as a new version; return the newest one where they are the same.

    The passing answer and "not applicable" do not change. Guideline and examples are not part of the content
    hash: they change neither the judge's question nor its identity.

    Raises EditConflict where another version is the newest by now, FieldProblem for a missing text or reason.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)  # one writer at a time
    newest = criterion.versions.latest("number")
    texts = asdict(words)
    if all(getattr(newest, name) == text for name, text in texts.items()):
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
        **texts,
        **rule,
    )
    consensus_follow(version=row)
    text_change_log(new=row, old=newest)
    return row


@transaction.atomic
def criterion_evidence_set(*, criterion: Criterion, evidence_on_fail: bool, by: User) -> None:
    """Set whether a failing answer to the criterion needs evidence; submitted answers stay as they are."""
    row = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    if row.evidence_on_fail == evidence_on_fail:
        return
    row.evidence_on_fail = evidence_on_fail
    row.save(update_fields=["evidence_on_fail"])
    audit(
        actor=by,
        verb="criterion changed",
        obj=row,
        criterion=row.key,
        evidence_on_fail={"old": not evidence_on_fail, "new": evidence_on_fail},
    )


def text_change_log(*, new: CriterionVersion, old: CriterionVersion) -> None:
    """Log who changed a criterion's text, with the changed fields before and after."""
    names = (*asdict(CriterionWords("", "")), "passes_when", "allow_na")
    texts = {name: {"old": getattr(old, name), "new": getattr(new, name)} for name in names}
    audit(
        actor=new.created_by,
        verb="criterion written",
        obj=new,
        criterion=new.criterion.key,
        number={"old": old.number, "new": new.number},
        reason=new.reason,
        asks_anew=new.content_hash != old.content_hash,
        **{name: change for name, change in texts.items() if change["old"] != change["new"]},
    )


def _demand(**texts: str) -> None:
    for field, text in texts.items():
        if not text.strip():
            raise FieldProblem(field, "is missing")
