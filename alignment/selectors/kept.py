"""Documents that are computed once and read back as long as nothing they depend on has changed."""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Max, QuerySet

from alignment.models.reports import Report
from labeling.models.rubric import Criterion, CriterionVersion

if TYPE_CHECKING:
    from alignment.selectors.scope import Scope  # which keeps documents itself


def pin_of(scope: "Scope", *more: Any) -> str:
    """A hash over the people's answers, runs and chats that a scope covers, and over what else is named.

    Parameters
    ----------
    scope : what the document is about.
    more : what else its body depends on: its kind, the version of its form, settings.
    """
    criteria = scope.criteria
    parts = [
        *more,
        scope.run and [scope.run.pk, scope.run.finished_at],
        scope.chat_set and [scope.chat_set.pk, scope.chat_set.name],
        [scope.split, scope.topic, scope.since, scope.until],
        scope.against,
        [[row.pk, row.labels_seq, row.tier, row.dimension.key, row.dimension.name] for row in criteria],
        _version_numbers(criteria),
        None if scope.is_fixed else _digest(scope.members.values_list("chat_id", flat=True)),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def kept(
    scope: "Scope", *, kind: Report.Kind, pin: str, body: Callable[[], dict[str, Any]], policy: int = 0
) -> Report:
    """The document of this pin, from the row that was stored, or computed and stored now.

    `policy` is the version of the policy that the body follows, 0 where it follows none.
    """
    if (stored := Report.objects.filter(pin=pin).first()) is not None:
        return stored
    about = {"run": scope.run, "chat_set": scope.chat_set, "against": scope.against, "split": scope.split}
    made = {"kind": kind, "policy": policy, "body": body()}
    return Report.objects.get_or_create(pin=pin, defaults=about | made)[0]


def _digest(ids: QuerySet[Any, int]) -> str:
    """A hash over ids in their order."""
    return hashlib.sha256(np.fromiter(ids.iterator(), dtype=np.int64).tobytes()).hexdigest()


def _version_numbers(criteria: Iterable[Criterion]) -> list[tuple[int, int]]:
    """Criterion id and the number of its newest text: a new question makes other labels count."""
    versions = CriterionVersion.objects.filter(criterion__in=criteria).values("criterion")
    rows = versions.annotate(Max("number")).order_by()
    return sorted((row["criterion"], row["number__max"]) for row in rows)
