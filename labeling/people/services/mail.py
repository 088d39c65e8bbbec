"""E-mails about accounts: added to a table in the transaction of their cause, and sent by a worker."""

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from common.site_address import site_address
from labeling.models.people import AccountMail, Invitation, User
from labeling.people.services.origin import current_address, current_browser


def reset_ask(*, email: str) -> None:
    """
    Ask for a link that sets a password.

    NB: whether an account has the address is looked up by the worker: the page must not take longer for one.
    """
    if settings.INBOX_MAIL:
        _add(AccountMail.Kind.RESET, to=email)


def invitation_mail(*, invitation: Invitation) -> bool:
    """Send an invitation's link, which the worker makes; False without a mail server or address."""
    if not settings.INBOX_MAIL or not invitation.email:
        return False
    _add(AccountMail.Kind.INVITATION, to=invitation.email, invitation=invitation)
    return True


def notice_send(*, user: User, what: str) -> None:
    """Tell a user, once the change is stored, how their account changed; nothing without a mail server."""
    if not settings.INBOX_MAIL or not user.email or not user.is_active:
        return
    context = {
        "what": what,
        "username": user.get_username(),
        "at": timezone.localtime(),
        "address": current_address(),
        "browser": current_browser(),
        "reset": site_address(reverse("account_reset_password")),
    }
    text = render_to_string("labeling/people/mail/notice.txt", context)
    _add(AccountMail.Kind.NOTICE, to=user.email, text=text)


def _add(kind: str, *, to: str, text: str = "", invitation: Invitation | None = None) -> None:
    now = timezone.now()
    AccountMail.objects.create(
        kind=kind, to=to, text=text, invitation=invitation, created_at=now, next_at=now
    )
