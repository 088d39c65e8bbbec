"""The only changes of the audit log: texts and names of people whose data is deleted."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from labeling.models.people import AuditEvent, User

ROWS_AT_ONCE = 500
TABLE = AuditEvent._meta.db_table


def event_texts_replace(about: Q, *, keys: Collection[str], instead: str) -> None:
    """Replace what people wrote into these events, by the name of the detail. Who, what and when stay."""
    changed = {}
    for event in _events().filter(about).iterator(ROWS_AT_ONCE):
        detail = {name: instead if name in keys and old else old for name, old in event.detail.items()}
        if detail != event.detail:
            changed[event.pk] = detail
    _store(changed)


def event_names_replace(names: Mapping[str, str]) -> None:
    """Replace names of a person by a pseudonym in the details of all events."""
    changed = {}
    for event in _events().iterator(ROWS_AT_ONCE):
        detail = names_replaced(event.detail, names)
        if detail != event.detail:
            changed[event.pk] = detail
    _store(changed)


def event_origins_delete(*, of: User) -> None:
    """Delete the addresses of entries by a person and about them, and the names of the person's tokens."""
    about = Q(actor=of) | Q(object_type=User._meta.label_lower, object_id=of.pk)
    with log_unlocked():
        _events().filter(about).exclude(address="").update(address="")
        _events().filter(actor=of).exclude(token_name="").update(token_name="")


def names_replaced(value: Any, names: Mapping[str, str]) -> Any:
    """
    Return plain JSON in which each text that is one of the names, as value or key, is its pseudonym.

    Examples
    --------
    >>> names_replaced({"raters": ["mara", "otto"], "by": "mara"}, {"mara": "deleted-7"})
    {'raters': ['deleted-7', 'otto'], 'by': 'deleted-7'}
    """
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [names_replaced(one, names) for one in value]
    if isinstance(value, dict):
        return {names.get(key, key): names_replaced(one, names) for key, one in value.items()}
    return value


def _events() -> QuerySet[AuditEvent]:
    # NB: the model's own manager refuses every change.
    return QuerySet(AuditEvent).order_by("pk")


def _store(changed: Mapping[int, dict[str, Any]]) -> None:
    if changed:
        with log_unlocked():
            for pk, detail in changed.items():
                _events().filter(pk=pk).update(detail=detail)


@contextmanager
def log_unlocked() -> Iterator[None]:
    """
    Let this transaction change events: put the trigger that refuses it out of force, and back.

    No other transaction can change one meanwhile, and a failure puts the trigger back, too.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # PostgreSQL alters no table whose foreign keys have yet to be checked.
            checked = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"
            cursor.execute(f"{checked}; ALTER TABLE {TABLE} DISABLE TRIGGER {TABLE}_append_only")
            yield
            cursor.execute(f"{checked}; ALTER TABLE {TABLE} ENABLE TRIGGER {TABLE}_append_only")
            return
        cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [f"{TABLE}_no_update"])
        (trigger,) = cursor.fetchone()
        cursor.execute(f"DROP TRIGGER {TABLE}_no_update")
        yield
        cursor.execute(trigger)
