"""Who did what on the labelling side, newest first."""

from dataclasses import dataclass

from django.apps import apps
from django.db.models import Model, QuerySet

from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, RaterNote
from labeling.models.people import AuditEvent, User
from labeling.people.queries.visibility import chats_shown

EVENTS_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event with its object in words."""

    event: AuditEvent
    thing: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some events; `following` is the cursor of the page after it, None on the last one."""

    rows: tuple[AuditRow, ...]
    following: int | None


def audit_events(*, user: User) -> QuerySet[AuditEvent]:
    """Every event but those about chats that the user may not see: they name the chat."""
    events = AuditEvent.objects.select_related("actor")
    if user.has_perm("labeling.see_holdout"):
        return events
    shown = chats_shown(user=user).values("pk")
    about_chats: dict[type[Model], str] = {Chat: "pk", Adjudication: "chat", RaterNote: "chat"}
    for model, chat in about_chats.items():
        held = model._default_manager.exclude(**{f"{chat}__in": shown}).values("pk")
        events = events.exclude(object_type=model._meta.label_lower, object_id__in=held)
    return events


def audit_page(*, user: User, before: int | None = None) -> AuditPage:
    """The newest events, or those older than the event `before`; one query however many there are."""
    events = audit_events(user=user).order_by("-pk")
    if before is not None:
        events = events.filter(pk__lt=before)
    found = list(events[: EVENTS_A_PAGE + 1])
    shown = found[:EVENTS_A_PAGE]
    rows = tuple(AuditRow(event, _thing(event)) for event in shown)
    return AuditPage(rows, shown[-1].pk if len(found) > EVENTS_A_PAGE else None)


def _thing(event: AuditEvent) -> str:
    """`labeling.labelingjob` 3 → labelling job 3."""
    name = str(apps.get_model(event.object_type)._meta.verbose_name).replace("labeling", "labelling")
    return f"{name} {event.object_id}"
