"""Audit log, newest first, filtered by who, what kind, which object and when."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Assignment, Label, RaterNote
from labeling.models.people import AuditEvent, User
from labeling.people.core import KINDS, KINDS_BY_KEY, endings_of_others, kind_of
from labeling.people.queries.visibility import chats_shown, sees_every_chat

EVENTS_A_PAGE = 50
ROWS_AT_ONCE = 1000
COLUMNS = (
    *("id", "at", "actor", "token_name", "kind", "verb", "object_type", "object_id"),
    *("request_id", "address", "detail"),
)
# An object in an address: labeling.labelingjob:3
OBJECT_SEPARATOR = ":"
COMMAND_LINE = "-"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """
    Which events to list; what is left out narrows nothing.

    person : user name; "-" for workers and the command line.
    token_name : name of an API token; tokens of two people may have the same name.
    kind : a key of `KINDS`.
    object : type and id, as `labeling.labelingjob:3`.
    first, last : days, both included, in the time zone of the workspace.
    """

    person: str = ""
    token_name: str = ""
    kind: str = ""
    object: str = ""
    first: date | None = None
    last: date | None = None

    @property
    def narrows(self) -> bool:
        """Whether anything is filtered."""
        return self != AuditFilter()

    @property
    def query(self) -> dict[str, str]:
        """Return the parameters of an address that lists the same."""
        days = {"first": self.first, "last": self.last}
        given = {name: getattr(self, name) for name in ("person", "token_name", "kind", "object")}
        given |= {name: day.isoformat() for name, day in days.items() if day}
        return {name: value for name, value in given.items() if value}

    @property
    def thing(self) -> str:
        """Return the readable name of the object; "" without one."""
        kind, _, number = self.object.partition(OBJECT_SEPARATOR)
        return thing_name(kind, number) if number else ""

    def condition(self) -> Q:
        """Return the filter for events."""
        wanted = Q()
        if self.person == COMMAND_LINE:
            wanted &= Q(actor=None, address="")
        elif self.person:
            wanted &= Q(actor__username=self.person)
        if self.token_name:
            wanted &= Q(token_name=self.token_name)
        if self.kind in KINDS_BY_KEY:
            wanted &= _of_kind(self.kind)
        if self.object:
            name, _, number = self.object.partition(OBJECT_SEPARATOR)
            wanted &= Q(object_type=name, object_id=int(number)) if _is_id(number) else Q(pk=None)
        if self.first:
            wanted &= Q(at__gte=_begin(self.first))
        if self.last:
            wanted &= Q(at__lt=_begin(self.last + timedelta(days=1)))
        return wanted


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event with the readable name of its object, and the object as filters name it."""

    event: AuditEvent
    thing: str
    object: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of events; `following` is the cursor of the next page, None on the last one."""

    rows: tuple[AuditRow, ...]
    following: int | None


def audit_events(*, user: User, only: AuditFilter | None = None) -> QuerySet[AuditEvent]:
    """Return the events, without those that name a chat the user may not see."""
    events = AuditEvent.objects.select_related("actor")
    if only is not None and only.narrows:
        events = events.filter(only.condition())
    if sees_every_chat(user=user):
        return events
    shown = chats_shown(user=user).values("pk")
    about_chats: dict[type[Model], str] = {
        Chat: "pk",
        Adjudication: "chat",
        Assignment: "chat",
        Label: "chat",
        RaterNote: "chat",
    }
    for model, chat in about_chats.items():
        hidden = model._default_manager.exclude(**{f"{chat}__in": shown}).values("pk")
        events = events.exclude(object_type=model._meta.label_lower, object_id__in=hidden)
    return events


def audit_page(*, user: User, before: int | None = None, only: AuditFilter | None = None) -> AuditPage:
    """Return the newest events, or those older than the event `before`, in one query."""
    events = audit_events(user=user, only=only).order_by("-pk")
    if before is not None:
        events = events.filter(pk__lt=before)
    newest = list(events[: EVENTS_A_PAGE + 1])
    shown = newest[:EVENTS_A_PAGE]
    rows = tuple(
        AuditRow(
            event,
            thing_name(event.object_type, event.object_id),
            f"{event.object_type}{OBJECT_SEPARATOR}{event.object_id}",
        )
        for event in shown
    )
    return AuditPage(rows, shown[-1].pk if len(newest) > EVENTS_A_PAGE else None)


def audit_people() -> list[str]:
    """Return the user names of those who made an event, in order."""
    made = Exists(AuditEvent.objects.filter(actor=OuterRef("pk")))
    return list(User.objects.filter(made).order_by("username").values_list("username", flat=True))


def audit_lines(*, user: User, only: AuditFilter) -> Iterator[dict[str, Any]]:
    """Yield the events as lines of a file, newest first."""
    for event in audit_events(user=user, only=only).order_by("-pk").iterator(chunk_size=ROWS_AT_ONCE):
        actor = event.actor.get_username() if event.actor else None
        computed = {"at": event.at.isoformat(), "actor": actor, "kind": kind_of(event.verb)}
        yield {name: computed.get(name, getattr(event, name, None)) for name in COLUMNS}


def thing_name(object_type: str, object_id: int | str) -> str:
    """Return the readable name: `labeling.labelingjob` 3 → labelling job 3."""
    try:
        name = str(apps.get_model(object_type)._meta.verbose_name).replace("labeling", "labelling")
    except (LookupError, ValueError):
        name = object_type
    return f"{name} {object_id}"


def _of_kind(key: str) -> Q:
    kind = KINDS_BY_KEY[key]
    by_noun, by_ending = Q(pk=None), Q(pk=None)
    for noun in _nouns(key):
        by_noun |= Q(verb=noun) | Q(verb__startswith=f"{noun} ")
    for noun in _nouns_before(key):
        by_noun &= ~Q(verb__startswith=f"{noun} ")
    for ending in endings_of_others(key):
        by_noun &= ~Q(verb__endswith=ending)
    for ending in kind.endings:
        by_ending |= Q(verb__endswith=ending)
    return by_noun | by_ending


def _nouns(key: str) -> tuple[str, ...]:
    return KINDS_BY_KEY[key].beginnings


def _nouns_before(key: str) -> Iterator[str]:
    """Yield longer nouns of other kinds that begin with one of this kind: alert settings, alert."""
    for kind in KINDS:
        if kind.key != key:
            yield from (
                noun for noun in kind.beginnings if any(noun.startswith(f"{own} ") for own in _nouns(key))
            )


def _begin(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19
