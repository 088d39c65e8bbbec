"""Labels and their histories copied inside the database: a fraction of the time of rows that travel."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models

from common.jsonl import in_batches
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


def history_add(*, label_ids: Sequence[int], client_id: uuid.UUID) -> None:
    """Copy what these labels now hold into their histories."""
    columns = {_column(LabelRevision, name): _column(Label, source) for name, source in _HISTORY.items()}
    client = models.UUIDField().get_db_prep_value(client_id, connection)
    for batch in in_batches(label_ids, ROWS_AT_ONCE):
        sql = (
            f"INSERT INTO {LabelRevision._meta.db_table}"  # noqa: S608  names come from our models
            f" ({', '.join(columns)}, {_column(LabelRevision, 'client_id')})"
            f" SELECT {', '.join(columns.values())}, %s"
            f" FROM {Label._meta.db_table} WHERE id IN ({', '.join(['%s'] * len(batch))})"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [client, *batch])


def labels_copy(*, labels: models.QuerySet[Label], changed: Mapping[str, Any]) -> None:
    """Insert these labels once more, with the fields in `changed` set to those values for all."""
    own = ("chat", "rater", "value", "rationale", "evidence", "given_at")
    columns = [_column(Label, name) for name in own if name not in changed]
    wanted, parameters = labels.order_by().values("pk").query.sql_with_params()
    values = [_value(Label, name, value) for name, value in changed.items()]
    sql = (
        f"INSERT INTO {Label._meta.db_table}"  # noqa: S608  names come from our models, the rest is bound
        f" ({', '.join([*columns, *(_column(Label, name) for name in changed)])})"
        f" SELECT {', '.join([*columns, *['%s'] * len(values)])}"
        f" FROM {Label._meta.db_table} WHERE id IN ({wanted})"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, *parameters])


def _value(model: type[models.Model], name: str, value: Any) -> Any:
    """As the database stores the field."""
    field = model._meta.get_field(name)
    return field.get_db_prep_value(value, connection) if isinstance(field, models.Field) else value


def _column(model: type[models.Model], name: str) -> str:
    """The quoted column of a field."""
    field = model._meta.get_field(name)
    return connection.ops.quote_name(str(getattr(field, "column", name)))
