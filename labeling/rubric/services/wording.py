"""Whether a change of texts for raters was one of wording only: a lead's decision; and undoing a change."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from django.db import transaction

from common.inbox.services import Kind, inbox_add
from labeling.consensus.services.consensus import consensus_recount
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Rubric, RubricGuideline, TextVersion
from labeling.people.services.audit import audit
from labeling.rubric.core.meaning import fresh_meaning
from labeling.rubric.queries.label_counts import active_criteria, labelled_since
from labeling.rubric.queries.versions import TEXTS
from labeling.rubric.services.versions import RULE, version_add

Wording = TextVersion.Wording


class NotPossible(Exception):
    """The version was labelled, decided or followed by another one in the meantime."""


# ---------- a lead decides ----------


@transaction.atomic
def criterion_wording_decide(*, version: CriterionVersion, only_wording: bool, by: User) -> CriterionVersion:
    """Store whether a version changed the wording only; its labels and the earlier ones follow.

    Raises NotPossible unless a lead was asked.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=version.criterion_id)
    row = CriterionVersion.objects.select_related("criterion").get(pk=version.pk)
    _demand_asked(row)
    versions = CriterionVersion.objects.filter(criterion=row.criterion_id)
    before = versions.filter(number__lt=row.number).latest("number")
    meaning = before.meaning
    if not only_wording:
        meaning = fresh_meaning(row.content_hash, row.number) if row.meaning == meaning else row.meaning
    versions.filter(pk__in=_continuing(row, versions)).update(meaning=meaning)
    row.meaning = meaning
    _decide(row, only_wording, by, criterion=row.criterion.key)
    _tell(row, f"text:{row.pk}", by)
    consensus_recount(criterion_ids=[row.criterion_id])
    return row


@transaction.atomic
def guideline_wording_decide(*, version: RubricGuideline, only_wording: bool, by: User) -> RubricGuideline:
    """Store whether a guideline changed the wording only; if not, its criteria get a new meaning.

    Raises NotPossible unless a lead was asked.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=version.rubric_id)
    row = RubricGuideline.objects.select_related("rubric").get(pk=version.pk)
    _demand_asked(row)
    anew = 0 if only_wording else rubric_means_anew(guideline=row, by=by)
    detail = {"criteria_with_new_meaning": anew} if anew else {}
    _decide(row, only_wording, by, rubric=row.rubric.name, **detail)
    _tell(row, f"guideline:{row.pk}", by)
    return row


def _continuing(row: CriterionVersion, versions: Iterable[CriterionVersion]) -> list[int]:
    """Return the ids of this version and of later ones with its meaning, up to one that restores a text."""

    def texts(one: CriterionVersion) -> tuple[object, ...]:
        return tuple(getattr(one, name) for name in (*TEXTS, *RULE))

    ordered = sorted(versions, key=lambda one: one.number)
    known = {texts(one) for one in ordered if one.number < row.number}
    later = [one for one in ordered if one.number > row.number and one.meaning == row.meaning]
    return [row.pk, *(one.pk for one in takewhile(lambda one: texts(one) not in known, later))]


def _demand_asked(row: TextVersion) -> None:
    if row.wording != Wording.ASKED:
        raise NotPossible(f"Version {row.number} needs no decision any more.")


def _decide(row: TextVersion, only_wording: bool, by: User, **detail: object) -> None:
    row.wording = Wording.CONFIRMED if only_wording else Wording.REFUSED
    row.wording_by = by
    row.save(update_fields=["wording", "wording_by"])
    audit(
        actor=by,
        verb="wording only confirmed" if only_wording else "wording only refused",
        obj=row,
        **detail,
        number=row.number,
        reason=row.reason,
    )


def _tell(row: TextVersion, subject: str, by: User) -> None:
    """Tell the author of a text what the lead decided."""
    if row.created_by is not None:
        inbox_add(users=[row.created_by], kind=Kind.ANSWERED, subject=subject, by=by)


def rubric_means_anew(*, guideline: RubricGuideline, by: User | None) -> int:
    """Give every active criterion of a guideline's rubric a version with a new meaning; return how many."""
    active = active_criteria(guideline.rubric_id).select_for_update(no_key=True)
    criteria = list(active.order_by("pk"))
    for criterion in criteria:
        newest = criterion.versions.latest("number")
        version_add(
            criterion=criterion,
            reason=f"Guideline version {guideline.number}: {guideline.reason}",
            by=by,
            meaning=fresh_meaning(newest.content_hash, newest.number + 1),
            guideline=guideline,
            **_words(newest),
        )
    return len(criteria)


# ---------- undo ----------


@transaction.atomic
def criterion_undo(*, version: CriterionVersion, by: User) -> CriterionVersion:
    """Write the texts from before a version again, as the next one; earlier labels count as they did.

    Raises NotPossible where somebody labelled the version, or another one followed it.
    """
    locked = Criterion.objects.select_for_update(no_key=True).get(pk=version.criterion_id)
    newest = locked.versions.latest("number")
    if newest.pk != version.pk or newest.number == 1 or newest.guideline_version_id:
        raise NotPossible(f"Version {version.number} is not the newest change of this text any more.")
    if labelled_since(newest):
        raise NotPossible(f"Version {version.number} has labels by now. Write a new version instead.")
    before = locked.versions.filter(number__lt=newest.number).latest("number")
    _withdraw(newest)
    return _as_before(locked, before, f"Undo of version {newest.number}", by)


@transaction.atomic
def guideline_undo(*, version: RubricGuideline, by: User) -> RubricGuideline:
    """Write a guideline's text from before a version again, as the next one; its criteria follow.

    Raises NotPossible where somebody labelled by the version, or another one followed it.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=version.rubric_id)
    versions = RubricGuideline.objects.filter(rubric=version.rubric_id)
    newest = versions.latest("number")
    if newest.pk != version.pk or newest.number == 1:
        raise NotPossible(f"Version {version.number} is not the newest change of this text any more.")
    if labelled_since(newest):
        raise NotPossible(f"Raters labelled by version {version.number} by now. Write a new version instead.")
    before = versions.filter(number__lt=newest.number).latest("number")
    _withdraw(newest)
    reason = f"Undo of version {newest.number}"
    row = RubricGuideline.objects.create(
        rubric_id=version.rubric_id, number=newest.number + 1, text=before.text, reason=reason, created_by=by
    )
    changed = CriterionVersion.objects.filter(guideline_version=newest).select_related("criterion")
    for one in changed.order_by("criterion_id"):
        criterion = Criterion.objects.select_for_update(no_key=True).get(pk=one.criterion_id)
        if criterion.versions.latest("number").pk == one.pk:
            earlier = criterion.versions.get(number=one.number - 1)
            _as_before(criterion, earlier, f"Undo of guideline version {newest.number}", by)
    audit(actor=by, verb="guideline undone", obj=row, number=row.number, undone=newest.number)
    return row


def _as_before(criterion: Criterion, before: CriterionVersion, reason: str, by: User) -> CriterionVersion:
    return version_add(criterion=criterion, reason=reason, by=by, meaning=before.meaning, **_words(before))


def _words(version: CriterionVersion) -> dict[str, Any]:
    """Return a version's texts and its rule, as the next one has them."""
    return {
        "texts": {name: getattr(version, name) for name in TEXTS},
        "rule": {name: getattr(version, name) for name in RULE},
    }


def _withdraw(row: TextVersion) -> None:
    """Withdraw the question to a lead: the change is undone."""
    if row.wording == Wording.ASKED:
        row.wording = ""
        row.save(update_fields=["wording"])
