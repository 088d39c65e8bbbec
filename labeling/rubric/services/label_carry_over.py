"""Carry labels and adjudications over from retired criteria to their replacement."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from common.jsonl import in_batches
from labeling.consensus.services.consensus import consensus_refresh
from labeling.consensus.services.label_copies import history_add, labels_copy
from labeling.models.labels import Adjudication, Label
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rubric.queries.redesign import LabelCarryOver, Tally, adjudications_of, labels_to_carry

CHATS_AT_ONCE = 1000
FIXED = {"state": Label.State.SUBMITTED, "source": Label.Source.CARRIED}


def labels_carry_over(*, olds: Sequence[Criterion], version: CriterionVersion) -> LabelCarryOver:
    """
    Copy counted labels and current adjudications to a new criterion and update its consensus.

    Where a rater labelled several old criteria on a chat, the answer carries over if all these answers are
    the same, else none does. The old criteria keep their labels. Call it in the transaction that creates the
    criterion; `olds` in the rubric's order.
    """
    carrier = _Carrier([row.pk for row in olds], version)
    labels, adjudications = carrier.labels(), carrier.adjudications()
    consensus_refresh(criterion_ids=[version.criterion_id], chat_ids=carrier.chat_ids)
    return LabelCarryOver(version.criterion.key, tuple(row.key for row in olds), labels, adjudications)


class _Carrier:
    def __init__(self, old_ids: Sequence[int], version: CriterionVersion) -> None:
        self.old_ids, self.version = old_ids, version
        self.chat_ids: set[int] = set()
        self.id = uuid.uuid4()  # client_id of all new revisions

    def labels(self) -> Tally:
        """Copy labels in a constant number of statements per thousand chats."""
        rows, tallies = labels_to_carry(self.old_ids), []
        chats = rows.order_by("chat").values_list("chat", flat=True).distinct()
        for some in in_batches(list(chats), CHATS_AT_ONCE):
            batch = rows.filter(chat__in=some)
            tallies.append(self._copied(batch, some) if len(self.old_ids) == 1 else self._joined(batch))
        return Tally(sum(part.carried for part in tallies), sum(part.conflicts for part in tallies))

    def _copied(self, labels: QuerySet[Label], chats: Sequence[int]) -> Tally:
        """Copy the labels of a single old criterion inside the database."""
        fixed = {"criterion": self.version.criterion_id, "version": self.version.pk, **FIXED}
        labels_copy(labels=labels, changed=fixed | {"post_reveal": False, "revision": 1, "active_ms": 0})
        new = Label.objects.filter(criterion=self.version.criterion_id, chat__in=chats)
        ids = list(new.values_list("pk", flat=True))
        history_add(label_ids=ids, client_id=self.id)
        self.chat_ids.update(chats)
        return Tally(len(ids), 0)

    def _joined(self, labels: QuerySet[Label]) -> Tally:
        """Merge equal answers on several old criteria."""
        ordered = labels.order_by("chat", "rater", "criterion__position", "criterion")
        cells = list(_cells(ordered, "chat_id", "rater_id"))
        new = [self._label(cell) for cell in cells if _agree(cell)]
        Label.objects.bulk_create(new)
        history_add(label_ids=[label.pk for label in new], client_id=self.id)
        self.chat_ids.update(label.chat_id for label in new)
        return Tally(len(new), len(cells) - len(new))

    def _label(self, cell: Sequence[Label]) -> Label:
        """Build one label from a rater's equal ones; active time stays with the old labels."""
        evidence: list[dict[str, Any]] = []
        for label in cell:
            evidence += [part for part in label.evidence if part not in evidence]
        return Label(
            chat_id=cell[0].chat_id,
            criterion_id=self.version.criterion_id,
            rater_id=cell[0].rater_id,
            version=self.version,
            value=cell[0].value,
            rationale="\n\n".join(dict.fromkeys(label.rationale for label in cell if label.rationale)),
            evidence=evidence,
            **FIXED,
            given_at=max(label.given_at for label in cell),
        )

    def adjudications(self) -> Tally:
        """Copy adjudications, of which there are few; of equal ones, the newest."""
        cells = list(_cells(adjudications_of(self.old_ids).order_by("chat", "created_at", "pk"), "chat_id"))
        new = [self._adjudication(cell[-1]) for cell in cells if _agree(cell)]
        Adjudication.objects.bulk_create(new)
        self.chat_ids.update(row.chat_id for row in new)
        return Tally(len(new), len(cells) - len(new))

    def _adjudication(self, old: Adjudication) -> Adjudication:
        return Adjudication(
            chat_id=old.chat_id,
            criterion_id=self.version.criterion_id,
            value=old.value,
            reason=old.reason,
            by_name=old.by_name,
            by_id=old.by_id,
            created_at=old.created_at,
        )


def _cells(rows: Iterable[Any], *names: str) -> Iterator[list[Any]]:
    """Group consecutive rows with the same values of these columns."""
    return (list(cell) for _, cell in groupby(rows, attrgetter(*names)))


def _agree(cell: Sequence[Any]) -> bool:
    return len({row.value for row in cell}) == 1
