"""Consensus rows, updated in the transaction that changes labels or adjudications."""

from collections.abc import Collection
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q

from common.jsonl import in_batches
from labeling.consensus.core.votes import ConsensusResult, Decision, Votes, consensus_of
from labeling.models.labels import Adjudication, Consensus, Label, counting_versions
from labeling.models.rubric import Criterion, CriterionVersion

CHATS_AT_ONCE = 1000

Cell = tuple[int, int]  # (chat id, criterion id)


def consensus_refresh(*, criterion_ids: Collection[int], chat_ids: Collection[int]) -> None:
    """
    Recompute the consensus of these criteria on these chats and raise the criteria's `labels_seq` by one.

    Call it once, after the change, inside the transaction that changed submitted labels or adjudications. The
    criteria are locked in id order: a second transaction waits here and then counts what the first committed.
    Where another question of a criterion now counts (`Label.objects.counted`), all its chats are recomputed.
    """
    if not criterion_ids or not chat_ids:
        return
    with transaction.atomic(savepoint=False):
        criteria = criteria_lock(criterion_ids=criterion_ids)
        counting = _counting(criteria)
        for chats in in_batches(sorted(set(chat_ids)), CHATS_AT_ONCE):
            _refresh(criteria, [row.pk for row in counting], chats)
        for criterion in sorted({row.criterion_id for row in counting if row.asked_otherwise}):
            versions = [row.pk for row in counting if row.criterion_id == criterion]
            if _others_differ(criterion, versions, chat_ids):
                _refresh_all(criterion, versions)
        Criterion.objects.filter(pk__in=criteria).update(labels_seq=F("labels_seq") + 1)


@transaction.atomic
def consensus_follow(*, version: CriterionVersion) -> None:
    """Recompute a criterion's consensus where its new version restores an earlier question.

    Call it after creating the version: labels to that question count again immediately.
    """
    earlier = CriterionVersion.objects.filter(criterion=version.criterion_id, number__lt=version.number)
    before = earlier.order_by("-number").first()
    same_again = before is None or before.meaning == version.meaning
    if same_again or not earlier.filter(meaning=version.meaning).exists():
        return
    consensus_recount(criterion_ids=[version.criterion_id])


@transaction.atomic
def consensus_recount(*, criterion_ids: Collection[int]) -> None:
    """Recompute these criteria on all chats, after other versions of their texts count."""
    for criterion in criteria_lock(criterion_ids=criterion_ids):
        _refresh_all(criterion, [row.pk for row in _counting([criterion])])
    # Without labels nothing changed, and its generated prompt may go on following the text.
    labelled = Criterion.objects.filter(pk__in=criterion_ids, labels_seq__gt=0)
    labelled.update(labels_seq=F("labels_seq") + 1)


class _Counting(NamedTuple):
    """A version whose labels count, and whether its criterion ever had another question."""

    pk: int
    criterion_id: int
    asked_otherwise: bool


def _counting(criteria: list[int]) -> list[_Counting]:
    other = CriterionVersion.objects.filter(criterion=OuterRef("criterion")).exclude(
        meaning=OuterRef("meaning")
    )
    counting = counting_versions().filter(criterion__in=criteria).annotate(asked_otherwise=Exists(other))
    return [_Counting(*row) for row in counting.values_list("pk", "criterion_id", "asked_otherwise")]


def _others_differ(criterion: int, versions: Collection[int], chat_ids: Collection[int]) -> bool:
    """Whether the rows of other chats come from another question than the one that counts now.

    Then this is true for all of them. NB: with too many chats to list, True is assumed.
    """
    if len(chat_ids) > CHATS_AT_ONCE:
        return True
    made = Consensus.objects.filter(criterion=criterion).exclude(n_true=0, n_false=0, n_na=0)
    # NB: by version ids, or the database would scan all labels of the criterion.
    counted = Label.objects.given().filter(version__in=versions).exclude(chat__in=chat_ids)
    some = list(counted.order_by().values_list("chat", flat=True)[:1])
    if not some:
        return made.exclude(chat__in=chat_ids).exists()
    return not made.filter(chat__in=some).exists()


def _refresh_all(criterion: int, versions: list[int]) -> None:
    """Recompute every chat with a consensus or a counted label."""
    known = Consensus.objects.filter(criterion=criterion).values_list("chat", flat=True)
    counted = Label.objects.given().filter(version__in=versions).values_list("chat", flat=True)
    for chats in in_batches(sorted({*known, *counted}), CHATS_AT_ONCE):
        _refresh([criterion], versions, chats)


def criteria_lock(*, criterion_ids: Collection[int]) -> list[int]:
    """Lock these criteria until the transaction ends, in id order to avoid deadlocks."""
    # NB: no_key, or the first answer on a chat would wait for all submissions.
    rows = Criterion.objects.select_for_update(no_key=True).filter(pk__in=set(criterion_ids)).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _refresh(criteria: list[int], versions: list[int], chats: list[int]) -> None:
    votes = _votes(criteria, versions, chats)
    decisions = _decisions(criteria, chats)
    stale = _stored(criteria, chats)
    rows = []
    for cell in votes.keys() | decisions.keys():
        counts = votes.get(cell, Votes())
        result = consensus_of(counts, decisions.get(cell))
        if result is not None:
            rows.append(_row(cell, counts, result))
            stale.pop(cell, None)
    Consensus.objects.filter(pk__in=stale.values()).delete()
    Consensus.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["chat", "criterion"],
        update_fields=["state", "by", "n_true", "n_false", "n_na"],
    )


def _votes(criteria: list[int], versions: list[int], chats: list[int]) -> dict[Cell, Votes]:
    """Count the blind, submitted labels to these versions."""
    # NB: by version ids: with stale statistics PostgreSQL would search them again for each label.
    counted = (
        Label.objects.given()
        .filter(criterion_id__in=criteria, chat_id__in=chats, version__in=versions)
        .values_list("chat_id", "criterion_id")
        .annotate(
            n_true=Count("pk", filter=Q(value=True)),
            n_false=Count("pk", filter=Q(value=False)),
            n_na=Count("pk", filter=Q(value=None)),
        )
        .order_by()
    )
    return {(chat, criterion): Votes(*counts) for chat, criterion, *counts in counted}


def _decisions(criteria: list[int], chats: list[int]) -> dict[Cell, Decision]:
    current = Adjudication.objects.filter(
        criterion_id__in=criteria, chat_id__in=chats, replaced_at=None
    ).values_list("chat_id", "criterion_id", "value")
    return {(chat, criterion): Decision(value) for chat, criterion, value in current}


def _stored(criteria: list[int], chats: list[int]) -> dict[Cell, int]:
    rows = Consensus.objects.filter(criterion_id__in=criteria, chat_id__in=chats)
    return {
        (chat, criterion): pk for chat, criterion, pk in rows.values_list("chat_id", "criterion_id", "pk")
    }


def _row(cell: Cell, votes: Votes, result: ConsensusResult) -> Consensus:
    chat_id, criterion_id = cell
    return Consensus(
        chat_id=chat_id,
        criterion_id=criterion_id,
        state=result.state,
        by=result.by,
        n_true=votes.n_true,
        n_false=votes.n_false,
        n_na=votes.n_na,
    )
