"""Audit log: one append-only row for each action of a lead or author."""

from typing import Any

from django.db import models

from labeling.models.people import AuditEvent, User


def audit(*, actor: User | None, verb: str, obj: models.Model, **detail: Any) -> AuditEvent:
    """Record an action in the transaction of its change; `detail` must be plain JSON.

    `verb` is two words, noun and past participle: "job opened", "label adjudicated".
    """
    return AuditEvent.objects.create(
        actor=actor, verb=verb, object_type=obj._meta.label_lower, object_id=obj.pk, detail=detail
    )
