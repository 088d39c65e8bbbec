"""Labels and their histories copied inside the database."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from common.jsonl import in_batches
from common.sql import insert_select
from labeling.models.labels import Label, LabelRevision

ROWS_AT_ONCE = 1000

# Field of a revision → field of its label.
_HISTORY = {
    "label": "id",
    "number": "revision",
    "value": "value",
    "rationale": "rationale",
    "evidence": "evidence",
    "version": "version",
    "state": "state",
    "post_reveal": "post_reveal",
    "created_at": "given_at",
}
_COPIED = ("chat", "rater", "value", "rationale", "evidence", "given_at")


def history_add(*, label_ids: Sequence[int], client_id: uuid.UUID) -> None:
    """Copy the current state of these labels into their histories."""
    for batch in in_batches(label_ids, ROWS_AT_ONCE):
        rows = Label.objects.filter(pk__in=batch).values_list(*_HISTORY.values())
        insert_select(LabelRevision, tuple(_HISTORY), rows, constants={"client_id": client_id})


def labels_copy(*, labels: QuerySet[Label], changed: Mapping[str, Any]) -> None:
    """Insert copies of these labels in which the fields of `changed` have the values given there."""
    fields = [name for name in _COPIED if name not in changed]
    insert_select(Label, fields, labels.values_list(*fields), constants=changed)
