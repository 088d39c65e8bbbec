"""Issue and revoke certificates of judges."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from alignment.certificates.core.body import qualifies
from alignment.certificates.core.signatures import key_id, public_text, sign
from alignment.certificates.queries.body import certificate_body
from alignment.certificates.queries.certificates import few_held_out, judge_changes
from alignment.certificates.services.keys import signing_key
from alignment.comparison.queries.disclosure import holdout_counts
from alignment.comparison.queries.latest_verdicts import COUNTED
from alignment.comparison.queries.scope import Scope
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.reports.worker import report_store
from common.problems import InputProblem
from evaluation.models.runs import FINISHED, Run
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.people.services.audit import audit

DAYS = 90
LONGEST_DAYS = 365
LONGEST_REASON = 2000
DAY = timedelta(days=1)
NOTHING_QUALIFIES = (
    "a certificate needs an aligned criterion, simple or context, "
    "with labels and verdicts on the same question"
)


class CertificateRefused(InputProblem):
    """The certificate cannot be issued or revoked; the message says why."""


def certificate_issue(*, run: Run, by: User, split: str = "", days: int = DAYS) -> Certificate:
    """Issue a certificate on the run's report against the consensus, valid for `days`.

    Raises CertificateRefused for an unfinished run, a try, a judge that is no longer in use, or a report that
    has a certificate or no criterion that qualifies; InputProblem for a key that cannot be read. Slow work
    comes first, so that the database is locked only to write.
    """
    _check(run, split, days)
    scope, now = Scope(run.chat_set, run, split), timezone.now()
    until = now + timedelta(days=days)
    report = _report(scope)
    key = signing_key()
    public = public_text(key)
    body = certificate_body(
        report=report,
        run=run,
        scope=scope,
        issued_by=by.get_full_name() or by.get_username(),
        issued_at=now,
        expires_at=until,
        key=key_id(public),
    )
    few = few_held_out(holdout_counts([run.pk]), run=run.pk, split=split)
    with transaction.atomic():
        # Of two simultaneous requests the second one sees the first certificate.
        Report.objects.select_for_update(of=("self",)).get(pk=report.pk)
        _check_duplicate(report, until=until)
        _check_in_use(run, body)
        row = Certificate.objects.create(
            judge=run.judge,
            report=report,
            body=body,
            signature=sign(body, key),
            public_key=public,
            few_held_out=few,
            issued_by=by,
            issued_at=now,
            expires_at=until,
        )
        audit(actor=by, verb="certificate issued", obj=row, run=run.pk, split=split, days=days)
    return row


@transaction.atomic
def certificate_revoke(*, certificate: Certificate, reason: str, by: User) -> Certificate:
    """Revoke a certificate. Raises CertificateRefused without a reason or if it is already revoked."""
    row = Certificate.objects.select_for_update(of=("self",)).get(pk=certificate.pk)
    if not (reason := reason.strip()):
        raise CertificateRefused("give a reason to revoke a certificate")
    if len(reason) > LONGEST_REASON:
        raise CertificateRefused(f"the reason is longer than {LONGEST_REASON:,} characters")
    if row.revoked_at is not None:
        raise CertificateRefused(f"certificate {row.pk} is already revoked")
    row.revoked_at, row.revoked_by, row.reason = timezone.now(), by, reason
    row.save(update_fields=["revoked_at", "revoked_by", "reason"])
    audit(actor=by, verb="certificate revoked", obj=row, reason=reason)
    return row


def certifiable(run: Run) -> str:
    """Return why this run's judge cannot be certified, independent of the report; '' if it can."""
    if run.purpose not in COUNTED:
        return f"run {run.pk} is a try: certify an evaluation"
    return "" if run.state in FINISHED else f"run {run.pk} is not finished"


def nothing_to_certify(report: Mapping[str, Any]) -> str:
    """Return why there is nothing to certify in this report; '' if a criterion qualifies."""
    return "" if any(qualifies(entry) for entry in report["criteria"]) else NOTHING_QUALIFIES


def _check(run: Run, split: str, days: int) -> None:
    if problem := certifiable(run):
        raise CertificateRefused(problem)
    if split and split not in Split.values:
        raise CertificateRefused(f"there is no split {split!r}")
    if not 1 <= days <= LONGEST_DAYS:
        raise CertificateRefused(f"a certificate is valid for 1 to {LONGEST_DAYS} days, not {days}")


def _report(scope: Scope) -> Report:
    """Return the report to certify."""
    report = report_store(scope, share=True)
    if report is None or not report.body["chats"]:
        raise CertificateRefused("the report has no chats")
    if problem := nothing_to_certify(report.body):
        raise CertificateRefused(problem)
    return report


def _check_in_use(run: Run, body: dict[str, Any]) -> None:
    if changed := judge_changes([(run.judge, body)])[0]:
        raise CertificateRefused(f"the judge of this run is no longer in use: {'; '.join(changed)}")


def _check_duplicate(report: Report, *, until: datetime) -> None:
    valid = Certificate.objects.filter(report=report, revoked_at=None, expires_at__gte=until - DAY)
    if (row := valid.order_by("-expires_at").first()) is not None:
        raise CertificateRefused(
            f"certificate {row.pk} on this report is already valid until {row.expires_at:%Y-%m-%d}"
        )
