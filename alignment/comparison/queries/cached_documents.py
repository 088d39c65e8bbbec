"""Documents: computed once and read back while nothing that they depend on has changed.

A process remembers what it computed. Workers, commands and POST requests store it for all processes.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from django.core.cache import caches
from django.db import connection, transaction
from django.db.models import Max, QuerySet

from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.models.rubric import Criterion, CriterionVersion

# Locks of the documents that this process is computing, by pin.
_COMPUTING: WeakValueDictionary[str, Lock] = WeakValueDictionary()
_LOOKING_UP = Lock()
_STORING: ContextVar[bool] = ContextVar("documents_stored", default=False)


def pin_of(
    scope: Scope,
    *more: Any,
    criteria: Sequence[Criterion] | None = None,
    numbers: Mapping[int, int] | None = None,
) -> str:
    """Hash of the state that a document depends on: labels, run, chats, and `more`.

    Parameters
    ----------
    scope : subject of the document.
    more : other dependencies of its body: its kind, the version of its form, settings.
    criteria, numbers : the scope's criteria and the number of each one's newest text, if already loaded.
    """
    criteria = scope.criteria if criteria is None else criteria
    numbers = version_numbers(criteria) if numbers is None else numbers
    parts = [
        *more,
        scope.run and [scope.run.pk, scope.run.finished_at],
        scope.chat_set and [scope.chat_set.pk, scope.chat_set.name],
        [scope.split, scope.topic, scope.since, scope.until],
        scope.against,
        [[row.pk, row.labels_seq, row.tier, row.dimension.key, row.dimension.name] for row in criteria],
        sorted((row.pk, numbers[row.pk]) for row in criteria),
        None if scope.is_fixed else ids_hash(scope.members.values_list("chat_id", flat=True)),
    ]
    return hash_of(parts)


def cached_document(
    scope: Scope,
    *,
    kind: Report.Kind,
    pin: str,
    body: Callable[[], dict[str, Any]],
    policy: int = 0,
    options: Sequence[Any] = (),
) -> Report:
    """Return the document of this pin: stored, remembered by this process, or computed now.

    What is computed is remembered. It is stored only inside `documents_stored`; else it has no id.
    `policy` is the version of the policy that the body follows, 0 for none.
    """
    new = Report(
        kind=kind,
        run=scope.run,
        chat_set=scope.chat_set,
        against=scope.against,
        split=scope.split,
        pin=pin,
        subject=subject_of(scope, kind, options),
        policy=policy,
    )
    if (known := known_document(new)) is None:
        with _one_at_a_time(pin):
            known = known_document(new) or _computed(new, scope, body)
    return known


def known_body(pin: str) -> dict[str, Any] | None:
    """Return the body of this pin if it is stored or this process remembers it; None if unknown."""
    known = known_document(Report(pin=pin))
    return None if known is None else dict(known.body)


def known_bodies(pins: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the bodies of these pins that are stored or remembered, by pin; at most one query."""
    bodies = {} if is_storing() else dict(caches["documents"].get_many(pins))
    if others := set(pins) - bodies.keys():
        bodies |= dict(Report.objects.filter(pin__in=others).values_list("pin", "body"))
    return bodies


def remembered(key: str, compute: Callable[[], Any]) -> Any:
    """Return a value that this process remembers under the key, computed if it does not."""
    memory = caches["documents"]
    if (value := memory.get(key)) is None:
        value = compute()
        memory.set(key, value)
    return value


@contextmanager
def documents_stored() -> Iterator[None]:
    """Store the documents that are computed inside: for workers, commands and POST requests.

    NB: reading never writes, so without it they are only remembered.
    """
    token = _STORING.set(True)
    try:
        yield
    finally:
        _STORING.reset(token)


def known_document(row: Report) -> Report | None:
    """Return the document as it is stored or, where it need not be stored, remembered; None if unknown."""
    # Of a report the stored row is wanted, which may have an id to link.
    if row.kind != Report.Kind.REPORT and not is_storing() and _remember(row):
        return row
    if (stored := Report.objects.filter(pin=row.pin).first()) is not None:
        return stored
    return row if not is_storing() and _remember(row) else None


def is_storing() -> bool:
    """Return whether documents are stored now: inside `documents_stored`."""
    return _STORING.get()


def _remember(row: Report) -> bool:
    """Fill in the body that this process remembers; False if it does not."""
    if (body := caches["documents"].get(row.pin)) is None:
        return False
    row.body = body
    return True


def _computed(row: Report, scope: Scope, body: Callable[[], dict[str, Any]]) -> Report:
    # The number of parts without chats is unlimited.
    if not is_storing() or (scope.is_part and not scope.members.exists()):
        row.body = remembered(row.pin, body)
        return row
    older = stored_ids([row])
    row.body = remembered(row.pin, body)
    keep_documents([row], older=older)
    return Report.objects.filter(pin=row.pin).first() or row


@contextmanager
def _one_at_a_time(pin: str) -> Iterator[None]:
    """Wait while another thread computes the same document: after a new label, many readers ask at once.

    NB: no waiting inside a transaction, which may hold a lock that the other thread needs.
    """
    if connection.in_atomic_block:
        yield
        return
    with _LOOKING_UP:
        lock = _COMPUTING.setdefault(pin, Lock())
    with lock:
        yield


def stored_ids(rows: Sequence[Report]) -> list[int]:
    """Ids of stored documents on these rows' subjects; call it before computing the bodies.

    A document that another writer stores in between may be newer, so it is kept. Shared ones are, too.
    """
    stored = Report.objects.filter(subject__in=[row.subject for row in rows], shared=False)
    return list(stored.values_list("pk", flat=True))


def keep_documents(rows: Sequence[Report], *, older: Sequence[int]) -> None:
    """Remember computed documents; inside `documents_stored` store them, and delete the older ones.

    A document that another writer stored is kept.
    """
    caches["documents"].set_many({row.pin: row.body for row in rows})
    if not is_storing():
        return
    with transaction.atomic():
        Report.objects.bulk_create(rows, ignore_conflicts=True)
        gone = Report.objects.filter(pk__in=older, shared=False).exclude(pin__in=[row.pin for row in rows])
        gone.only("pk").delete()  # their bodies may be large


def hash_of(parts: Any) -> str:
    """SHA-256 of a JSON value; other types, such as times, as text."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def subject_of(scope: Scope, kind: Report.Kind, options: Sequence[Any] = ()) -> str:
    """Hash of a document's subject: its kind, scope and options, without the state of labels and chats."""
    whose = [scope.run and scope.run.pk, scope.chat_set and scope.chat_set.pk, scope.against, scope.only]
    part = [scope.split, scope.topic, scope.since, scope.until, sorted(scope.without_holdout)]
    return hash_of([kind.value, *whose, *part, *options])


def ids_hash(ids: QuerySet[Any, int]) -> str:
    """SHA-256 of ids, in their order."""
    return hashlib.sha256(np.fromiter(ids.iterator(), dtype=np.int64).tobytes()).hexdigest()


def version_numbers(criteria: Iterable[Criterion]) -> dict[int, int]:
    """Number of the newest text by criterion id: with a new question, other labels count."""
    versions = CriterionVersion.objects.filter(criterion__in=criteria).values("criterion")
    rows = versions.annotate(Max("number")).order_by()
    return {row["criterion"]: row["number__max"] for row in rows}
