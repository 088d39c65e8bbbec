"""The alignment report: one selector behind page, command and JSON."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from django.db.models import Max
from django.utils import timezone

from alignment.core.report import build_report
from alignment.core.status import StatusPolicy
from alignment.models.reports import Report
from alignment.selectors.answers import report_data
from alignment.selectors.engine import engine_section
from alignment.selectors.scope import Scope
from labeling.models.rubric import Criterion, CriterionVersion

SEED = 20_260_101
BODY_VERSION = 5
POLICY = StatusPolicy()


def alignment_report(scope: Scope) -> dict[str, Any]:
    """The report's JSON (docs/reports.md). Computed once for the same labels and verdicts, then read back.

    Raises UnknownRater when it is asked against somebody without labels here.
    """
    stored = stored_report(scope)
    return _body(scope) if stored is None else dict(stored.body)


def stored_report(scope: Scope) -> Report | None:
    """The report's row, computed now where there is none; None while the run still goes on."""
    if not (pin := _pin(scope)):
        return None
    if (stored := Report.objects.filter(pin=pin).first()) is not None:
        return stored
    about = {"run": scope.run, "chat_set": scope.chat_set, "against": scope.against, "split": scope.split}
    body = {"policy": POLICY.version, "body": _body(scope)}
    return Report.objects.get_or_create(pin=pin, defaults=about | body)[0]


def _body(scope: Scope) -> dict[str, Any]:
    judge = scope.run.judge if scope.run else None
    head: dict[str, Any] = {
        "run": scope.run.pk if scope.run else None,
        "set": scope.chat_set.name if scope.chat_set else None,
        "split": scope.split or None,
        "topic": scope.topic or None,
        "since": scope.since and scope.since.isoformat(),
        "until": scope.until and scope.until.isoformat(),
        "against": scope.against,
        "judge": judge
        and {
            "name": judge.name,
            "fingerprint": judge.fingerprint,
            "engine": judge.engine,
            "model": judge.model,
        },
    }
    report = build_report(report_data(scope), policy=POLICY, seed=SEED)
    head |= {"chats": report.pop("chats"), "generated_at": timezone.now().isoformat()}
    return head | report | {"engine": engine_section(scope)}


def _pin(scope: Scope) -> str:
    """A hash over all the body depends on; '' while the run still goes on."""
    if scope.run is not None and scope.run.finished_at is None:
        return ""
    criteria = scope.criteria
    parts = [
        BODY_VERSION,
        scope.run and [scope.run.pk, scope.run.finished_at],
        scope.chat_set and [scope.chat_set.pk, scope.chat_set.name],
        [scope.split, scope.topic, scope.since, scope.until],
        scope.against,
        POLICY.version,
        SEED,
        [[row.pk, row.labels_seq, row.tier, row.dimension.key, row.dimension.name] for row in criteria],
        version_numbers(criteria),
        list(scope.members.values_list("chat_id", flat=True)),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def version_numbers(criteria: Iterable[Criterion]) -> list[tuple[int, int]]:
    """Criterion id and the number of its newest text: a new question makes other labels count."""
    versions = CriterionVersion.objects.filter(criterion__in=criteria).values("criterion")
    rows = versions.annotate(Max("number")).order_by()
    return sorted((row["criterion"], row["number__max"]) for row in rows)
