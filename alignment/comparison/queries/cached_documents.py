"""Documents that are computed once and read back as long as nothing they depend on has changed."""

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

# By pin, of what threads of this process are computing.
_COMPUTING: WeakValueDictionary[str, Lock] = WeakValueDictionary()
_LOOKING_UP = Lock()


def pin_of(
    scope: Scope,
    *more: Any,
    criteria: Sequence[Criterion] | None = None,
    numbers: Mapping[int, int] | None = None,
) -> str:
    """A hash over the people's answers, runs and chats that a scope covers, and over what else is named.

    Parameters
    ----------
    scope : what the document is about.
    more : what else its body depends on: its kind, the version of its form, settings.
    criteria, numbers : the scope's, and the number of each one's newest text, where they are known already.
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
        None if scope.is_fixed else digest(scope.members.values_list("chat_id", flat=True)),
    ]
    return hash_of(parts)


def kept(
    scope: Scope,
    *,
    kind: Report.Kind,
    pin: str,
    body: Callable[[], dict[str, Any]],
    policy: int = 0,
    options: Sequence[Any] = (),
) -> Report:
    """The document of this pin, from the row that was stored, or computed and stored now.

    A report stays for good. Any other kind takes the place of what was there of the same subject: the same
    part of the same run or set, and the same `options`; it comes without an id when it was computed now. Of a
    part without chats nothing is stored.
    `policy` is the version of the policy that the body follows, 0 where it follows none.
    """
    if (stored := _stored(pin)) is not None:
        return stored
    with _one_at_a_time(pin):
        return _stored(pin) or _computed(scope, kind, pin, body, policy, options)


def _stored(pin: str) -> Report | None:
    return Report.objects.filter(pin=pin).first()


@contextmanager
def _one_at_a_time(pin: str) -> Iterator[None]:
    """Who asks for what another thread is computing waits for it: readers come at once, after a new label.

    NB: nobody waits inside a transaction, who may hold what the other one needs to store its document.
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
    made = {"kind": kind, "policy": policy}
    subject = subject_of(scope, kind, options)
    row = Report(pin=pin, subject=subject, **about, **made)
    if scope.is_part and not scope.members.exists():
        row.body = body()  # not stored: there is no end of topics and days without a chat
        return row
    if kind == Report.Kind.REPORT:
        new = {**about, **made, "subject": subject, "body": body()}
        return Report.objects.get_or_create(pin=pin, defaults=new)[0]
    older = older_than([row])
    row.body = body()
    replace_kept([row], older=older)
    return row


def older_than(rows: Sequence[Report]) -> list[int]:
    """Ids of what is stored of these rows' subjects: asked before their bodies are computed.

    What another writer stores meanwhile may be newer, and stays until the next.
    """
    stored = Report.objects.filter(subject__in=[row.subject for row in rows])
    return list(stored.values_list("pk", flat=True))


def replace_kept(rows: Sequence[Report], *, older: Sequence[int]) -> None:
    """Store documents in the place of older ones; one that another writer has stored is left as it is."""
    with transaction.atomic():
        Report.objects.bulk_create(rows, ignore_conflicts=True)
        gone = Report.objects.filter(pk__in=older).exclude(pin__in=[row.pin for row in rows])
        gone.only("pk").delete()  # their bodies may be large


def hash_of(parts: Any) -> str:
    """A hash over what JSON can say; times and the like as texts."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def subject_of(scope: Scope, kind: Report.Kind, options: Sequence[Any] = ()) -> str:
    """A hash over what a document is about, without the state that answers, texts and chats are in."""
    whose = [scope.run and scope.run.pk, scope.chat_set and scope.chat_set.pk, scope.against, scope.only]
    part = [scope.split, scope.topic, scope.since, scope.until, sorted(scope.without_holdout)]
    return hash_of([kind.value, *whose, *part, *options])


def digest(ids: QuerySet[Any, int]) -> str:
    """A hash over ids in their order."""
    return hashlib.sha256(np.fromiter(ids.iterator(), dtype=np.int64).tobytes()).hexdigest()


def version_numbers(criteria: Iterable[Criterion]) -> dict[int, int]:
    """The number of each criterion's newest text, by id: a new question makes other labels count."""
    versions = CriterionVersion.objects.filter(criterion__in=criteria).values("criterion")
    rows = versions.annotate(Max("number")).order_by()
    return {row["criterion"]: row["number__max"] for row in rows}
