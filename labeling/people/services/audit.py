"""Audit log: one append-only row for each action of a lead or author, and for each import."""

import getpass
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from django.db import models

from common.jsonl import ImportResult
from common.request_id import current_request_id
from labeling.models.people import ApiToken, AuditEvent, User, Workspace
from labeling.people.services.origin import current_address, current_token_name

ROWS_AT_ONCE = 500

_acting: ContextVar[User | None] = ContextVar("acting", default=None)
_rights_logged: ContextVar[bool] = ContextVar("rights_logged", default=False)
# Program and token name of the coding agent at work.
_agent: ContextVar[tuple[str, str] | None] = ContextVar("agent", default=None)


@contextmanager
def acting(user: User, *, rights_logged: bool = False) -> Iterator[None]:
    """Name the user who makes the changes in here: of accounts by Django's own pages, or by an import.

    rights_logged : whether the caller's own entry says how roles and access change.
    """
    token, logged = _acting.set(user), _rights_logged.set(rights_logged)
    try:
        yield
    finally:
        _rights_logged.reset(logged)
        _acting.reset(token)


def rights_are_logged() -> bool:
    """Whether whoever changes rights logs it: then the change itself needs no entry."""
    return _rights_logged.get()


def acting_user() -> User | None:
    """Return the user of `acting`; None on the command line."""
    return _acting.get()


@contextmanager
def through_agent(*, token: ApiToken, program: str) -> Iterator[None]:
    """Record every action in here as one of a coding agent: its program, and the token that it holds."""
    reset = _agent.set((program or "unnamed", token.name))
    try:
        yield
    finally:
        _agent.reset(reset)


def audit(*, actor: User | None, verb: str, obj: models.Model, **detail: Any) -> AuditEvent:
    """Record an action in the transaction of its change; `detail` must be plain JSON.

    `verb` is two words, noun and past participle: "job opened", "label adjudicated". The noun gives the
    event its kind (`labeling.people.core`).
    """
    event = _event(actor, verb, obj, detail)
    event.save(force_insert=True)
    return event


def audit_all(
    *, actor: User | None, verb: str, rows: Iterable[tuple[models.Model, Mapping[str, Any]]]
) -> None:
    """Record the same action on several objects, each with its detail, in a few statements."""
    events = [_event(actor, verb, obj, detail) for obj, detail in rows]
    AuditEvent.objects.bulk_create(events, batch_size=ROWS_AT_ONCE)


def audit_import(
    *, what: str, path: Path, result: ImportResult, obj: models.Model | None = None, **detail: Any
) -> None:
    """Record an import, in its transaction: who ran it, the file and the counts.

    `obj` is what the import filled; without one it is the workspace.
    """
    counts = {"created": result.created, "unchanged": result.unchanged, "updated": result.updated}
    audit_command(what=what, path=path, obj=obj, **counts, **detail)


def audit_command(*, what: str, path: Path, obj: models.Model | None = None, **detail: Any) -> None:
    """Record an import whose counts are not those of an `ImportResult`."""
    actor = acting_user()
    if actor is None:
        detail["operator"] = operator_name()
    audit(actor=actor, verb=f"{what} imported", obj=obj or Workspace.current(), file=path.name, **detail)


def operator_name() -> str:
    """Return the name of the system account that runs the command; "unknown" where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's numeric user has no name
        return "unknown"


def _event(actor: User | None, verb: str, obj: models.Model, detail: Mapping[str, Any]) -> AuditEvent:
    agent = _agent.get()
    return AuditEvent(
        actor=actor,
        verb=verb,
        object_type=obj._meta.label_lower,
        object_id=obj.pk,
        detail={**detail, "agent": agent[0]} if agent else dict(detail),
        request_id=current_request_id(),
        address=current_address(),
        token_name=agent[1] if agent else current_token_name(),
    )
