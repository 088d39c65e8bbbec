"""E-mails about accounts: plain and short, with links to the address that the settings name."""

import logging
from functools import partial

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from labeling.models.people import User
from labeling.people.services.origin import current_address, current_browser

logger = logging.getLogger(__name__)


def site_address(path: str) -> str:
    """Return the address of a page for a mail. NB: never from the request, whose host anybody can name."""
    return f"{settings.SITE_URL}{path}"


def mail_send(*, to: str, subject: str, text: str) -> bool:
    """Send a mail; False where the mail server cannot be reached or refuses it. The log names no address."""
    message = EmailMessage(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{subject}",
        text,
        to=[to],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        return message.send() == 1
    except (OSError, ValueError) as error:  # of the network, the server's answer, or the address
        logger.warning("account e-mail not sent: %s", type(error).__name__)
        return False


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
    transaction.on_commit(partial(mail_send, to=user.email, subject="your account changed", text=text))
