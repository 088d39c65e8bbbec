"""Texts and rules for raters; each change of a guideline or criterion text makes a version with a reason."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from django.db import transaction

from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline
from labeling.people.services.audit import audit
from labeling.rubric.core.meaning import Change
from labeling.rubric.queries.guidelines import guideline_in_force
from labeling.rubric.services.versions import RULE, ask_leads, claim_of, version_add
from labeling.rubric.services.wording import rubric_means_anew


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
def guideline_write(
    *, rubric: Rubric, text: str, reason: str, base: int, by: User | None, meaning: Change = ""
) -> RubricGuideline:
    """Save a rubric's guideline as a new version; return the newest one where the text is the same.

    `base` is the number of the version that was edited, 0 for none. With a new meaning, all active criteria
    of the rubric get a version of their own: their earlier labels stop counting with the first label to it.

    Raises EditConflict where another version is the newest by now, FieldProblem for a missing text or reason.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=rubric.pk)  # one writer at a time
    newest = guideline_in_force(rubric_id=rubric.pk)
    if newest is not None and newest.text == text:
        return newest
    if base != (newest.number if newest else 0):
        raise EditConflict(newest)
    _demand(text=text, reason=reason)
    claim = claim_of(meaning, by)
    row = RubricGuideline.objects.create(
        rubric=rubric,
        number=base + 1,
        text=text,
        reason=reason.strip(),
        created_by=by,
        wording=claim.wording,
        wording_by=claim.confirmed_by,
    )
    if claim.asked:
        ask_leads(f"guideline:{row.pk}", by=by)
    anew = rubric_means_anew(guideline=row, by=by) if meaning == "new" else 0
    audit(
        actor=by,
        verb="guideline written",
        obj=row,
        rubric=rubric.name,
        number=row.number,
        reason=row.reason,
        **({"wording": row.wording} if row.wording else {}),
        **({"criteria_with_new_meaning": anew} if anew else {}),
    )
    return row


@transaction.atomic
def criterion_write(
    *,
    criterion: Criterion,
    words: CriterionWords,
    reason: str,
    base: int,
    by: User | None,
    meaning: Change = "",
    rule: Mapping[str, bool] | None = None,
) -> CriterionVersion:
    """Save a criterion's texts as a new version; return the newest one where they are the same.

    `rule` (passing answer, "not applicable") stays without a new one; the caller checks it. `meaning` says
    whether earlier labels go on counting: `wording` keeps them, once a lead confirms it; `new` retires them
    with the first label to the new text. "" is a new meaning for another question or definition, and none
    for guideline and examples.

    Raises EditConflict where another version is the newest by now, FieldProblem for a missing text or reason.
    """
    locked = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)  # one writer at a time
    newest = locked.versions.latest("number")
    texts, kept = asdict(words), {name: getattr(newest, name) for name in RULE}
    rule = kept if rule is None else rule
    if rule == kept and all(getattr(newest, name) == text for name, text in texts.items()):
        return newest
    if base != newest.number:
        raise EditConflict(newest)
    _demand(question=words.question, definition=words.definition, reason=reason)
    return version_add(
        criterion=locked,
        texts=texts,
        rule=rule,
        reason=reason.strip(),
        by=by,
        claim=claim_of(meaning, by),
    )


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


def _demand(**texts: str) -> None:
    for field, text in texts.items():
        if not text.strip():
            raise FieldProblem(field, "is missing")
