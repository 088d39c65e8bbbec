"""Today's report of certified runs, computed once for each change of labels, texts or status policy."""

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings

from alignment.certificates.core.body import TodaysReport
from alignment.comparison.core.data_hash import answers_hash
from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.cached_documents import cached_document, hash_of
from alignment.comparison.queries.scope import Scope
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.reports.core.criterion import criterion_entry
from alignment.reports.queries.report_list import current_pins
from alignment.reports.queries.reports import POLICY, SEED

BODY_VERSION = 1
ENTRY = ("key", "tier", "status", "reasons", "questions")


def changed_reports(rows: Collection[Certificate]) -> dict[int, TodaysReport]:
    """Return today's report by certificate id, where it may differ from the certified one.

    Two queries, four if some differ. What nobody has read since the change is computed now: the status of the
    criteria alone, which replaces that from before the change.
    """
    scopes = {row.pk: Scope(row.report.chat_set, row.report.run, row.report.split) for row in rows}
    pins = current_pins(scopes, {row.pk: [entry["key"] for entry in row.body["criteria"]] for row in rows})
    changed = [row for row in rows if pins[row.pk] != row.report.pin]
    if not changed:
        return {}
    reports = Report.objects.filter(pk__in={row.report_id for row in changed})
    answers = dict(reports.values_list("pk", "body__pinned__answers"))
    bodies = _bodies({pins[row.pk]: scopes[row.pk] for row in changed})
    return {row.pk: _todays_report(row, bodies[pins[row.pk]], answers[row.report_id]) for row in changed}


def _todays_report(row: Certificate, body: Mapping[str, Any], answers: str | None) -> TodaysReport:
    """`answers` is the hash of the certified report's answers; None in reports that were stored without."""
    return TodaysReport(
        criteria={entry["key"]: entry for entry in body["criteria"]},
        labels_changed=answers is not None and answers != body["answers"],
        policy=body["policy"] if body["policy"] != row.body["report"]["policy"] else "",
    )


def _bodies(scopes: Mapping[str, Scope]) -> dict[str, dict[str, Any]]:
    """Return today's statuses, by pin of today's report as `scopes` are; one query and what is computed."""
    pins = {hash_of([Report.Kind.CERTIFIED.value, BODY_VERSION, pin]): pin for pin in scopes}
    stored = dict(Report.objects.filter(pin__in=pins).values_list("pin", "body"))
    return {pin: stored.get(own) or _computed(scopes[pin], own) for own, pin in pins.items()}


def _computed(scope: Scope, pin: str) -> dict[str, Any]:
    kind = Report.Kind.CERTIFIED
    document = cached_document(scope, kind=kind, pin=pin, policy=POLICY.version, body=lambda: _body(scope))
    return dict(document.body)


def _body(scope: Scope) -> dict[str, Any]:
    """Return what decides on a certificate; the entries are those of the report."""
    data = report_data(scope)
    entries = [criterion_entry(data, one, policy=POLICY, seed=SEED) for one in data.criteria]
    return {
        "answers": answers_hash(data, key=settings.SECRET_KEY.encode()),
        "policy": POLICY.label,
        "criteria": [{name: entry[name] for name in ENTRY} for entry in entries],
    }
