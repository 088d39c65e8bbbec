"""E-mails about accounts that wait or were not sent, for the status page."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Min, Q

from labeling.models.people import AccountMail

_State = AccountMail.State


@dataclass(frozen=True, slots=True)
class MailState:
    """
    E-mails that wait for the worker, and those it gave up.

    server : whether a mail server is set.
    oldest : since when the oldest one waits.
    error : why the latest one was not sent; "" for none.
    """

    server: bool
    waiting: int
    oldest: datetime | None
    failed: int
    error: str


def mail_state() -> MailState:
    """Return how the e-mails are, in two queries."""
    waiting = Q(state=_State.WAITING)
    counts = AccountMail.objects.aggregate(
        waiting=Count("pk", filter=waiting),
        oldest=Min("created_at", filter=waiting),
        failed=Count("pk", filter=Q(state=_State.FAILED)),
    )
    latest = AccountMail.objects.exclude(error="").order_by("-pk").values_list("error", flat=True).first()
    return MailState(server=settings.INBOX_MAIL, error=latest or "", **counts)
