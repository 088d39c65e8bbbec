"""Audit log: one append-only row for each action of a lead or author."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import models

from labeling.models.people import AuditEvent, User

_acting: ContextVar[User | None] = ContextVar("acting", default=None)


@contextmanager
def acting(user: User) -> Iterator[None]:
    """Name the user whose changes of accounts are made in here, by Django's own pages."""
    token = _acting.set(user)
    try:
        yield
    finally:
        _acting.reset(token)


def acting_user() -> User | None:
    """Return the user of `acting`; None on the command line."""
    return _acting.get()


def audit(*, actor: User | None, verb: str, obj: models.Model, **detail: Any) -> AuditEvent:
    """Record an action in the transaction of its change; `detail` must be plain JSON.

    `verb` is two words, noun and past participle: "job opened", "label adjudicated".
    """
    return AuditEvent.objects.create(
        actor=actor, verb=verb, object_type=obj._meta.label_lower, object_id=obj.pk, detail=detail
    )
