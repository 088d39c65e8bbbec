"""The list and the page of certificates."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.certificates.core.body import Use, certified, use_of
from alignment.certificates.core.signatures import key_id
from alignment.certificates.queries.certificates import (
    CertificateState,
    certificate_state,
    certificate_states,
    certificate_whole,
    certificates_shown,
)
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.reports.queries.label_minimums import label_minimums
from alignment.reports.queries.next_steps import Step, next_steps
from alignment.reports.queries.stored import readable_report, scope_of
from labeling.models.people import User

SHOWN = 100
MANY_TOPICS = 12
USES = {
    Use.PRODUCTION: ("aligned", "May score production"),
    Use.DIRECTIONAL: ("dir", "Directional only"),
    Use.NONE: ("not", "No use"),
}
STATES = {"valid": ("aligned", "Valid"), "expired": ("not", "Expired"), "revoked": ("not", "Revoked")}
ENDED = "It no longer permits any use."
# Statuses whose cause is in the labels: no use until that is mended.
LABEL_CAUSES = {
    "not_enough_labels": ("few", "Not enough labels"),
    "raters_disagree": ("apart", "Raters disagree"),
}
NOT_APPLICABLE = "judge_not_applicable"
RATES = (("tpr", "TPR"), ("tnr", "TNR"), ("balanced_accuracy", "Balanced accuracy"))


def certificate_list(*, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the template context of the newest certificates that the user may see; constant queries."""
    rows = certificates_shown(list(certificate_whole()[:SHOWN]), user=user)
    states = certificate_states(rows)
    return {
        "items": [
            {
                "row": row,
                "state": states[row.pk],
                "chip": STATES[states[row.pk].word],
                "production": len(certified(row.body)) if states[row.pk].holds else 0,
                "criteria": len(row.body["criteria"]),
            }
            for row in rows
        ]
    }


def certificate_found(pk: int, *, user: User | AnonymousUser) -> Certificate | None:
    """Return the certificate, None if there is none or the user may not see it."""
    rows = certificates_shown(list(certificate_whole().filter(pk=pk)), user=user)
    return rows[0] if rows else None


def certificate_page(row: Certificate, *, user: User | AnonymousUser) -> dict[str, Any]:
    """Return the template context of one certificate: its body, and whether it is valid now.

    `stored` is the certified report, if the user may open it.
    """
    body, state = row.body, certificate_state(row)
    stored = readable_report(row.report_id, user=user)
    steps = _next_steps(stored, user) if stored and state.holds else {}
    return {
        "certificate": row,
        "title": title(row),
        "body": body,
        "state": state,
        "chip": STATES[state.word],
        "criteria": [_criterion(entry, steps.get(entry["key"], [])) for entry in body["criteria"]],
        "no_answer_label": _no_answer_label(body),
        "headline": f"{headline(uses_in(body))}." if state.holds else ENDED,
        "many_topics": len(body["topics"]) > MANY_TOPICS,
        "key": key_id(row.public_key),
        "stored": stored,
        "report_url": _report_url(body),
    }


def certificate_json(row: Certificate, state: CertificateState | None = None) -> dict[str, Any]:
    """Return the JSON of the API: the stored signed body, signature and key, and whether it is valid now."""
    now = state or certificate_state(row)
    return {
        "id": row.pk,
        "body": row.body,
        "signature": row.signature,
        "public_key": row.public_key,
        "state": now.word,
        "reasons": list(now.reasons),
        "notes": list(now.notes),
        "revoked_at": row.revoked_at,
    }


def uses_of(report: Mapping[str, Any]) -> Counter[Use]:
    """Return on how many criteria a certificate on this report would permit each use."""
    return Counter(use_of(entry)[0] for entry in report["criteria"])


def uses_in(body: Mapping[str, Any]) -> Counter[Use]:
    """Return on how many criteria a certificate permits each use."""
    return Counter(Use(entry["use"]) for entry in body["criteria"])


def title(row: Certificate) -> str:
    """Return the certificate's name with its scope: how many criteria it certifies, on which split."""
    covered = f"{len(certified(row.body))} of {_criteria(len(row.body['criteria']))}"
    return f"Certificate {row.pk}: {covered} on {row.body['labels']['split'] or 'all splits'}"


def headline(uses: Counter[Use]) -> str:
    """Return the permitted use as a sentence without its full stop."""
    directional = uses[Use.DIRECTIONAL]
    text = f"May score production on {uses[Use.PRODUCTION]} of {_criteria(uses.total())}"
    more = f"; {directional} {'is' if directional == 1 else 'are'} directional only" if directional else ""
    return f"{text}{more}"


def _criteria(number: int) -> str:
    return f"{number} criteri{'on' if number == 1 else 'a'}"


def _next_steps(stored: Report, user: User | AnonymousUser) -> dict[str, list[Step]]:
    """Return the next steps of the certified report for each criterion without a permitted use."""
    scope = scope_of(stored)
    entries = [entry for entry in stored.body["criteria"] if use_of(entry)[0] == Use.NONE]
    minimums = label_minimums()
    return {entry["key"]: next_steps(entry, scope, user=user, minimums=minimums) for entry in entries}


def _criterion(entry: Mapping[str, Any], steps: list[Step]) -> dict[str, Any]:
    chip = USES[Use(entry["use"])]
    if entry["use"] == Use.NONE:
        chip = LABEL_CAUSES.get(entry["status"], chip)
    figures = [{"name": name, **_figure(entry[key])} for key, name in RATES]
    return dict(entry) | {
        "name": entry["key"].replace("_", " ").capitalize(),
        "chip": chip,
        "figures": figures,
        "next_steps": steps,
        "ceiling": _figure(entry["ceiling"]),
        "no_answer": _no_answer(entry),
    }


def _no_answer_label(body: Mapping[str, Any]) -> str:
    """Return the column's heading: the first certificates did not count not applicable."""
    known = all(NOT_APPLICABLE in entry for entry in body["criteria"])
    return "Neither True nor False" if known else "No verdict"


def _no_answer(entry: Mapping[str, Any]) -> str:
    """Return on how many labelled chats the judge gave neither True nor False, by reason."""
    counts = {"not applicable": entry.get(NOT_APPLICABLE), **entry["no_verdict"]}
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)


def _figure(stored: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return a stored figure to two decimals; empty if undefined."""
    if stored is None or stored["value"] is None:
        return {"value": "", "interval": ""}
    low, high = stored["low"], stored["high"]
    between = f"{float(low):.2f}–{float(high):.2f}" if low is not None and high is not None else ""
    return {"value": f"{float(stored['value']):.2f}", "interval": between}


def _report_url(body: Mapping[str, Any]) -> str:
    split = body["labels"]["split"]
    return reverse("alignment:report_run", args=[body["run"]], query={"split": split} if split else {})
