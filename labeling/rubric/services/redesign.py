"""Redesign of criteria: retire some and create their replacements; labels and history are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.problems import FieldProblem
from labeling.consensus.services.consensus import criteria_lock
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionLineage, CriterionVersion, Dimension, Tier
from labeling.people.services.audit import audit
from labeling.rubric.core.redesign import REASON_LIMIT, Redesign, Successor
from labeling.rubric.core.rubric import version_hash
from labeling.rubric.queries.lineage import BROUGHT_BACK, ENDED
from labeling.rubric.queries.redesign import LabelCarryOver, redesigned
from labeling.rubric.services.label_carry_over import labels_carry_over


@dataclass(frozen=True, slots=True)
class Redesigned:
    """The result: retired criteria, new criteria, and the labels that carried over to each."""

    olds: tuple[Criterion, ...]
    new: tuple[Criterion, ...]
    carried: tuple[LabelCarryOver, ...]


@transaction.atomic
def criteria_redesign(*, redesign: Redesign, reason: str, by: User | None) -> Redesigned:
    """
    Retire criteria and create their replacements, each with version 1 and at the old position.

    Labels, drafts, jobs, runs, reports and pages of retired criteria are kept, but new runs and labels skip
    them. Existing labelling jobs do not get the new criteria: a lead opens new jobs.

    Raises FieldProblem as `queries.redesign.redesigned` does, or for a missing reason; no data is written.
    """
    reason = _reason(reason)
    # All criteria, because later positions shift; locked in id order to avoid deadlocks.
    criteria_lock(criterion_ids=list(Criterion.objects.values_list("pk", flat=True)))
    olds = redesigned(redesign=redesign)
    now = timezone.now()
    new = _create(redesign, olds, reason, by)
    _lineage(redesign, olds, new, reason=reason, by=by, at=now)
    carried = tuple(
        labels_carry_over(olds=[row for row in olds if row.key in successor.carries], version=version)
        for successor, version in zip(redesign.into, new, strict=True)
        if successor.carries
    )
    for row in olds:
        row.state = Criterion.State.RETIRED
        row.save(update_fields=["state"])
    _record(redesign, olds, carried, reason=reason, by=by)
    return Redesigned(tuple(olds), tuple(version.criterion for version in new), carried)


@transaction.atomic
def criterion_bring_back(*, criterion: Criterion, reason: str, by: User | None) -> Criterion:
    """Reactivate a retired criterion in new runs and in the open jobs that asked it; drafts are kept.

    Its replacements stay active. Raises FieldProblem without a reason, or where it is not retired.
    """
    reason = _reason(reason)
    row = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    if row.state != Criterion.State.RETIRED:
        raise FieldProblem("kind", f"{row.key} is not retired")
    row.state = Criterion.State.ACTIVE
    row.save(update_fields=["state"])
    audit(actor=by, verb=BROUGHT_BACK, obj=row, criterion=row.key, reason=reason)
    return row


def _reason(reason: str) -> str:
    if not reason.strip():
        raise FieldProblem("reason", "is missing")
    if len(reason) > REASON_LIMIT:
        raise FieldProblem("reason", f"must not be longer than {REASON_LIMIT:,} characters")
    return reason.strip()


def _create(
    redesign: Redesign, olds: Sequence[Criterion], reason: str, by: User | None
) -> list[CriterionVersion]:
    """Create the new criteria, directly after the first of the old ones."""
    place = olds[0].position
    behind = Criterion.objects.filter(position__gt=place)
    behind.update(position=F("position") + len(redesign.into))
    dimensions = {row.key: row for row in Dimension.objects.all()}
    versions = []
    for n, successor in enumerate(redesign.into):
        criterion = _criterion(successor, olds, dimensions[successor.spec.dimension], place + n + 1)
        versions.append(_version(criterion, successor, reason, by))
    return versions


def _criterion(
    successor: Successor, olds: Sequence[Criterion], dimension: Dimension, position: int
) -> Criterion:
    spec = successor.spec
    every = spec.tier == Tier.CONTEXT or any(row.articles == Criterion.Articles.ALL for row in olds)
    return Criterion.objects.create(
        key=spec.key,
        rubric_id=olds[0].rubric_id,
        dimension=dimension,
        tier=spec.tier,
        critical=spec.critical,
        evidence_on_fail=any(row.evidence_on_fail for row in olds),
        position=position,
        articles=Criterion.Articles.ALL if every else Criterion.Articles.LISTED,
    )


def _version(criterion: Criterion, successor: Successor, reason: str, by: User | None) -> CriterionVersion:
    spec = successor.spec
    rule: dict[str, Any] = {
        "question": spec.question,
        "definition": spec.definition,
        "passes_when": spec.passes_when,
        "allow_na": spec.allow_na,
    }
    return CriterionVersion.objects.create(
        criterion=criterion,
        number=1,
        content_hash=version_hash(**rule),
        reason=reason,
        created_by=by,
        **rule,
        **spec.words_for_raters,
    )


def _lineage(
    redesign: Redesign,
    olds: Sequence[Criterion],
    new: Sequence[CriterionVersion],
    *,
    reason: str,
    by: User | None,
    at: datetime,
) -> None:
    CriterionLineage.objects.bulk_create(
        CriterionLineage(
            old=old,
            new=version.criterion,
            kind=redesign.kind,
            carries_labels=old.key in successor.carries,
            reason=reason,
            by=by,
            at=at,
        )
        for successor, version in zip(redesign.into, new, strict=True)
        for old in olds
    )


def _record(
    redesign: Redesign,
    olds: Sequence[Criterion],
    carried: Sequence[LabelCarryOver],
    *,
    reason: str,
    by: User | None,
) -> None:
    """Log one event per retired criterion; the first one has the counts that carried over."""
    into = [successor.spec.key for successor in redesign.into]
    for n, row in enumerate(olds):
        detail: dict[str, Any] = {"criterion": row.key, "reason": reason} | ({"into": into} if into else {})
        if carried and not n:
            detail["labels_carried"] = sum(counts.labels.carried for counts in carried)
        audit(actor=by, verb=ENDED[redesign.kind], obj=row, **detail)
