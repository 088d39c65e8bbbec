"""What the worker does with e-mails about accounts: makes their links, sends them, and tries again later."""

import logging
import secrets
import smtplib
from collections.abc import Iterator
from datetime import timedelta

from allauth.account.internal.userkit import filter_users_by_email
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from common.site_address import site_address
from labeling.models.people import AccountMail, Invitation, Role
from labeling.people.queries.people import open_invitations
from labeling.people.services.invitations import digest
from labeling.people.services.sign_in import reset_path

logger = logging.getLogger(__name__)

# Pauses after each failure; after the last one it stays as failed.
PAUSES = tuple(timedelta(minutes=one) for one in (1, 5, 15, 60, 240))
# A worker that died with one leaves it to another after this time.
CLAIMED_FOR = timedelta(minutes=5)
KEPT = timedelta(days=30)
MOST = 50  # e-mails a sweep
SUBJECTS = {
    AccountMail.Kind.INVITATION: "invitation",
    AccountMail.Kind.RESET: "set a new password",
    AccountMail.Kind.NOTICE: "your account changed",
}
_State = AccountMail.State


def mails_sweep() -> None:
    """Send what is due, and delete what failed long ago. A server that is down is left for a minute."""
    AccountMail.objects.filter(state=_State.FAILED, created_at__lt=timezone.now() - KEPT).delete()
    if not settings.INBOX_MAIL:
        return
    due = AccountMail.objects.filter(state=_State.WAITING, next_at__lte=timezone.now())
    for mail in due.select_related("invitation__created_by").order_by("pk")[:MOST]:
        until = timezone.now() + CLAIMED_FOR
        mine = due.filter(pk=mail.pk).update(next_at=until, attempts=F("attempts") + 1)
        if mine and not _sent(mail):
            due.update(next_at=timezone.now() + PAUSES[0])
            return


def _sent(mail: AccountMail) -> bool:
    """Send one e-mail and delete it; False where the server cannot be reached."""
    try:
        for text in _texts(mail):
            _send(mail, text)
    except smtplib.SMTPRecipientsRefused as error:
        _failed(mail, error, for_good=all(code >= 500 for code, _ in error.recipients.values()))
    except ValueError as error:  # of the address
        _failed(mail, error, for_good=True)
    except OSError as error:  # of the network, or the server's answer
        _failed(mail, error)
        return isinstance(error, smtplib.SMTPResponseException)
    else:
        mail.delete()
    return True


def _send(mail: AccountMail, text: str) -> None:
    EmailMessage(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{SUBJECTS[AccountMail.Kind(mail.kind)]}",
        text,
        to=[mail.to],
        headers={"Auto-Submitted": "auto-generated"},
    ).send()


def _failed(mail: AccountMail, error: Exception, *, for_good: bool = False) -> None:
    """Note why, and when to try again. NB: neither log nor table names the server or the address."""
    mail.error, tried = _reason(error), mail.attempts
    if for_good or tried >= len(PAUSES):
        mail.state, mail.text = _State.FAILED, ""
    else:
        mail.next_at = timezone.now() + PAUSES[tried]
    mail.save(update_fields=["error", "state", "text", "next_at"])
    logger.warning("account e-mail %s not sent: %s", mail.pk, mail.error)


def _reason(error: Exception) -> str:
    match error:
        case smtplib.SMTPRecipientsRefused():
            codes = sorted({code for code, _ in error.recipients.values()})
            return f"The mail server refused the address ({', '.join(map(str, codes))})."
        case smtplib.SMTPAuthenticationError():
            return f"The mail server refused the user name or password ({error.smtp_code})."
        case smtplib.SMTPResponseException():
            return f"The mail server refused the e-mail ({error.smtp_code})."
        case TimeoutError():
            return "The mail server did not answer in time."
        case OSError():
            return "The mail server could not be reached."
        case _:
            return "The address is not valid."


# ---------- texts ----------


def _texts(mail: AccountMail) -> Iterator[str]:
    """Yield what to send to the address: one text, or one for each account that has it."""
    if mail.kind == AccountMail.Kind.NOTICE:
        yield mail.text
    elif mail.kind == AccountMail.Kind.RESET:
        yield from _resets(mail.to)
    elif mail.invitation is not None:
        yield from _invitation(mail.invitation)


def _resets(email: str) -> Iterator[str]:
    for user in filter_users_by_email(email, is_active=True, prefer_verified=True, for_login=True):
        context = {"username": user.get_username(), "link": site_address(reset_path(user))}
        yield render_to_string("labeling/people/mail/reset.txt", context)


@sensitive_variables("secret", "link")
def _invitation(row: Invitation) -> Iterator[str]:
    """Yield the text with a new link; nothing where the invitation has ended. The link is stored nowhere."""
    secret = secrets.token_urlsafe(32)
    if not open_invitations().filter(pk=row.pk, digest=row.digest).update(digest=digest(secret)):
        return
    by = row.created_by
    link = site_address(reverse("labeling:join", kwargs={"token": secret}))
    name = " ".join((by.get_full_name() or by.get_username()).split())
    context = {"by": name, "role": Role(row.role).label.lower(), "until": timezone.localtime(row.expires_at)}
    yield render_to_string("labeling/people/mail/invitation.txt", {**context, "link": link})
    Invitation.objects.filter(pk=row.pk).update(mailed_at=timezone.now())
