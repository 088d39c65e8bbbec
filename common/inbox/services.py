"""Tell users of things, mark them as read, and comment on them."""

import logging
import re
from collections.abc import Collection, Iterable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from common.inbox.subjects import Subject, subjects_open_to
from common.models import Comment, InboxChoice, InboxItem
from common.problems import FieldProblem
from common.site_address import site_address

logger = logging.getLogger(__name__)

LONGEST = 4_000  # characters of a comment
MOST_MENTIONED = 20  # people in one text
MOST = 500  # comments on one subject
READ_KEPT = timedelta(days=90)
MAIL_AFTER = timedelta(minutes=2)  # what is read on the site meanwhile is not sent
MOST_MAILED = 50
SENT_TWICE = timedelta(minutes=1)  # the same comment again within this time is one that was sent twice
# A name after @, as Django allows it in usernames; a full stop at the end belongs to the sentence.
MENTION = re.compile(r"(?<![\w@.+-])@([\w.@+-]*[\w@+-])")
Kind = InboxItem.Kind


def inbox_add(
    *, users: Iterable[AbstractUser], kind: Kind, subject: str, by: AbstractUser | None = None
) -> None:
    """Tell these users, but not the one who did it, nor those who may not open the subject.

    An answer waits for those who may not open it yet: a rater's chat is still to label. Telling somebody the
    same thing again makes the item unread and new.
    """
    now = timezone.now()
    for user in {one.pk: one for one in users}.values():
        if by and user.pk == by.pk:
            continue
        if kind != Kind.ANSWERED and subject not in subjects_open_to(user, [subject]):
            continue
        InboxItem.objects.update_or_create(
            user_id=user.pk,
            kind=kind,
            subject=subject,
            defaults={"by_id": by.pk if by else None, "at": now, "read_at": None, "mailed_at": None},
        )


def inbox_read(*, user: AbstractUser, items: Collection[int] | None = None) -> int:
    """Mark the user's items as read, all of them where `items` is None; how many were unread."""
    rows = InboxItem.objects.filter(user_id=user.pk, read_at=None)
    return (rows if items is None else rows.filter(pk__in=items)).update(read_at=timezone.now())


def inbox_by_mail(*, user: AbstractUser, on: bool) -> None:
    """Store whether the user wants the inbox by e-mail too."""
    InboxChoice.objects.update_or_create(user_id=user.pk, defaults={"by_mail": on})


def inbox_sweep() -> None:
    """Delete items that were read long ago, and send the unread ones to those who want e-mail."""
    InboxItem.objects.filter(read_at__lt=timezone.now() - READ_KEPT).delete()
    if not settings.INBOX_MAIL:
        return
    wanted = InboxChoice.objects.filter(by_mail=True, user__is_active=True).exclude(user__email="")
    for choice in wanted.select_related("user"):
        _send_mail(choice.user)


def _send_mail(user: AbstractUser) -> None:
    """Send one message about what is unread and was not sent yet; each item is sent once at most."""
    now = timezone.now()
    waiting = InboxItem.objects.filter(user_id=user.pk, read_at=None, mailed_at=None)
    items = list(waiting.filter(at__lte=now - MAIL_AFTER).order_by("pk")[:MOST_MAILED])
    these = [item.pk for item in items]
    if not these or waiting.filter(pk__in=these).update(mailed_at=now) < len(these):
        return  # another sweep sends them
    subjects = subjects_open_to(user, (item.subject for item in items))
    lines = [
        f"{item.get_kind_display()}: {subjects[item.subject].title}"
        for item in items
        if item.subject in subjects
    ]
    if not lines:
        return
    text = "\n".join([*lines, "", site_address(reverse("inbox"))])
    try:
        send_mail(f"LACE workbench: {len(lines)} unread", text, None, [user.email])
    except OSError as error:  # of the network, or the server's answer; the next sweep tries again
        InboxItem.objects.filter(pk__in=these).update(mailed_at=None)
        logger.warning("inbox e-mail not sent: %s", type(error).__name__)


@transaction.atomic
def comment_add(*, subject: str, about: Subject, text: str, by: AbstractUser) -> Comment:
    """Add a comment to a thread; who is mentioned, and who takes part in the thread, is told.

    Raises FieldProblem for an empty or too long text, a full thread, or a mention of somebody who may not
    open the subject.
    """
    text = text.strip()
    if not text:
        raise FieldProblem("text", "Write a comment first.")
    if len(text) > LONGEST:
        raise FieldProblem("text", f"A comment has at most {LONGEST:,} characters.")
    thread = Comment.objects.filter(subject=subject)
    if thread.count() >= MOST:
        raise FieldProblem("text", f"This thread already has {MOST} comments.")
    newest = thread.filter(by=by.pk).order_by("-pk").first()
    if newest and newest.text == text and newest.at > timezone.now() - SENT_TWICE:
        return newest
    mentioned = mentions(text, subject=subject)
    earlier = {*about.people, *thread.values_list("by", flat=True)}
    comment = Comment.objects.create(subject=subject, text=text, by_id=by.pk, at=timezone.now())
    inbox_add(users=mentioned, kind=Kind.MENTIONED, subject=subject, by=by)
    others = earlier - {one.pk for one in mentioned}
    inbox_add(users=_accounts(pk__in=others), kind=Kind.ANSWERED, subject=subject, by=by)
    return comment


def mentions(text: str, *, subject: str) -> list[AbstractUser]:
    """Return the accounts named with @ in a text.

    Raises FieldProblem for too many, or if one of them may not open the subject; '' asks for none.
    """
    names = set(MENTION.findall(text))
    if len(names) > MOST_MENTIONED:
        raise FieldProblem("text", f"A text mentions at most {MOST_MENTIONED} people.")
    found = _accounts(username__in=names) if names else []
    for user in found:
        if subject and subject not in subjects_open_to(user, [subject]):
            raise FieldProblem("text", f"{user.get_username()} cannot open this: mention somebody who can.")
    return found


def _accounts(**where: object) -> list[AbstractUser]:
    return list(get_user_model().objects.filter(is_active=True, **where).order_by("pk"))
