"""Cached documents: computed once and read back while nothing that they depend on has changed."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from django.db import connection, transaction
from django.db.models import Max, QuerySet

from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.models.rubric import Criterion, CriterionVersion

# Locks of the documents that this process is computing, by pin.
_COMPUTING: WeakValueDictionary[str, Lock] = WeakValueDictionary()
_LOOKING_UP = Lock()


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
    """Return the stored document of this pin, or compute and store it.

    Reports are kept for good. A document of another kind replaces older ones on the same subject (scope and
    `options`), and has no id when it is computed now. A part without chats is not stored.
    `policy` is the version of the policy that the body follows, 0 for none.
    """
    if (stored := _stored(pin)) is not None:
        return stored
    with _one_at_a_time(pin):
        return _stored(pin) or _computed(scope, kind, pin, body, policy, options)


def _stored(pin: str) -> Report | None:
    return Report.objects.filter(pin=pin).first()


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


def _computed(
    scope: Scope,
    kind: Report.Kind,
    pin: str,
    body: Callable[[], dict[str, Any]],
    policy: int,
    options: Sequence[Any],
) -> Report:
    about = {"run": scope.run, "chat_set": scope.chat_set, "against": scope.against, "split": scope.split}
    settings = {"kind": kind, "policy": policy}
    subject = subject_of(scope, kind, options)
    row = Report(pin=pin, subject=subject, **about, **settings)
    if scope.is_part and not scope.members.exists():
        row.body = body()  # not stored: the number of parts without chats is unlimited
        return row
    if kind == Report.Kind.REPORT:
        new = {**about, **settings, "subject": subject, "body": body()}
        return Report.objects.get_or_create(pin=pin, defaults=new)[0]
    older = stored_ids([row])
    row.body = body()
    replace_documents([row], older=older)
    return row


def add_briefs(row: Report, briefs: Mapping[str, Any] | None) -> None:
    """Add what the briefs changed to a report that was stored without it; its body stays as it is."""
    if briefs is None:
        return
    row.briefs = briefs
    if row.pk is not None:  # a part without chats is not stored
        row.save(update_fields=["briefs"])


def stored_ids(rows: Sequence[Report]) -> list[int]:
    """Ids of stored documents on these rows' subjects; call it before computing the bodies.

    A document that another writer stores in between may be newer, so it is kept.
    """
    stored = Report.objects.filter(subject__in=[row.subject for row in rows])
    return list(stored.values_list("pk", flat=True))


def replace_documents(rows: Sequence[Report], *, older: Sequence[int]) -> None:
    """Store documents and delete the older ones; a document stored by another writer is kept."""
    with transaction.atomic():
        Report.objects.bulk_create(rows, ignore_conflicts=True)
        gone = Report.objects.filter(pk__in=older).exclude(pin__in=[row.pin for row in rows])
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
