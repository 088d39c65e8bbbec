"""Certificates as rows, of whatever run."""

from datetime import timedelta

from django.utils import timezone

from alignment.core.signatures import key_id, public_text, signed
from alignment.models.certificates import Certificate
from alignment.selectors.certificate_body import certificate_body
from alignment.selectors.reports import stored_report
from alignment.selectors.scope import Scope
from alignment.services.certificate_keys import signing_key
from evaluation.models.runs import Run
from labeling.models.people import User


def stored_certificate(run: Run, *, by: User, split: str = "") -> Certificate:
    """A certificate on the run's report, whether or not its judge is still in use."""
    scope, key, now = Scope(run.chat_set, run, split), signing_key(), timezone.now()
    report = stored_report(scope)
    assert report is not None
    public, until = public_text(key), now + timedelta(days=90)
    body = certificate_body(
        report=report,
        run=run,
        scope=scope,
        issued_by=by.get_username(),
        issued_at=now,
        expires_at=until,
        key=key_id(public),
    )
    return Certificate.objects.create(
        judge=run.judge,
        report=report,
        body=body,
        signature=signed(body, key),
        public_key=public,
        issued_by=by,
        issued_at=now,
        expires_at=until,
    )
