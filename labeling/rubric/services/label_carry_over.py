"""Carry labels and adjudications over from retired criteria to their replacement."""

import uuid
from collections.abc import Sequence

from labeling.consensus.services.consensus import consensus_refresh
from labeling.consensus.services.label_copies import history_add, labels_copy
from labeling.models.labels import Adjudication, Label
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rubric.queries.redesign import LabelCarryOver, carry_over_plan

FIXED = {
    "state": Label.State.SUBMITTED,
    "source": Label.Source.CARRIED,
    "post_reveal": False,
    "revision": 1,
    "active_ms": 0,  # stays with the old label
}


def labels_carry_over(*, olds: Sequence[Criterion], version: CriterionVersion) -> LabelCarryOver:
    """
    Copy counted labels and current adjudications to a new criterion and update its consensus.

    Of several old criteria, chats are excluded where their consensuses differ (`chat_carry_over`). Each copy
    names the criterion that it is from; the old criteria keep their labels. Call it in the transaction that
    creates the criterion; `olds` in the rubric's order.
    """
    new = version.criterion
    plan = carry_over_plan(key=new.key, olds=olds)
    for old, labels in plan.labels:
        labels_copy(
            labels=labels, changed={**FIXED, "criterion": new.pk, "version": version.pk, "carried_from": old}
        )
    Adjudication.objects.bulk_create(_copy(old, new) for old in plan.adjudications)
    copies = Label.objects.filter(criterion=new)
    history_add(label_ids=list(copies.values_list("pk", flat=True)), client_id=uuid.uuid4())
    chats = {*copies.values_list("chat", flat=True).distinct(), *(row.chat_id for row in plan.adjudications)}
    consensus_refresh(criterion_ids=[new.pk], chat_ids=chats)
    return plan.counts


def _copy(old: Adjudication, new: Criterion) -> Adjudication:
    return Adjudication(
        chat_id=old.chat_id,
        criterion=new,
        value=old.value,
        reason=old.reason,
        by_name=old.by_name,
        by_id=old.by_id,
        carried_from_id=old.criterion_id,
        created_at=old.created_at,
    )
