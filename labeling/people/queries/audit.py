"""Audit log of labelling, newest first."""

from dataclasses import dataclass

from django.apps import apps
from django.db.models import Model, QuerySet

from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Label, RaterNote
from labeling.models.people import AuditEvent, User
from labeling.people.queries.visibility import chats_shown, sees_every_chat

EVENTS_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event with the readable name of its object."""

    event: AuditEvent
    thing: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of events; `following` is the cursor of the next page, None on the last one."""

    rows: tuple[AuditRow, ...]
    following: int | None


def audit_events(*, user: User) -> QuerySet[AuditEvent]:
    """Return the events, without those that name a chat the user may not see."""
    events = AuditEvent.objects.select_related("actor")
    if sees_every_chat(user=user):
        return events
    shown = chats_shown(user=user).values("pk")
    about_chats: dict[type[Model], str] = {
        Chat: "pk",
        Adjudication: "chat",
        Label: "chat",
        RaterNote: "chat",
    }
    for model, chat in about_chats.items():
        hidden = model._default_manager.exclude(**{f"{chat}__in": shown}).values("pk")
        events = events.exclude(object_type=model._meta.label_lower, object_id__in=hidden)
    return events


def audit_page(*, user: User, before: int | None = None) -> AuditPage:
    """Return the newest events, or those older than the event `before`, in one query."""
    events = audit_events(user=user).order_by("-pk")
    if before is not None:
        events = events.filter(pk__lt=before)
    newest = list(events[: EVENTS_A_PAGE + 1])
    shown = newest[:EVENTS_A_PAGE]
    rows = tuple(AuditRow(event, _thing(event)) for event in shown)
    return AuditPage(rows, shown[-1].pk if len(newest) > EVENTS_A_PAGE else None)


def _thing(event: AuditEvent) -> str:
    """Return the readable name: `labeling.labelingjob` 3 → labelling job 3."""
    name = str(apps.get_model(event.object_type)._meta.verbose_name).replace("labeling", "labelling")
    return f"{name} {event.object_id}"
