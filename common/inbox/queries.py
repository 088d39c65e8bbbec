"""The inbox of a user, and the thread of a subject."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractUser
from django.db.models import QuerySet

from common.inbox.subjects import Subject, subjects_open_to
from common.models import Comment, InboxChoice, InboxItem

MOST_SHOWN = 500


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An item with what it is about."""

    item: InboxItem
    subject: Subject


def inbox_rows(*, user: AbstractUser, unread: bool = False) -> list[InboxRow]:
    """Return the newest items whose subject the user may still open, newest first."""
    rows = InboxItem.objects.filter(user_id=user.pk).select_related("by").order_by("-at", "-pk")
    items = list((rows.filter(read_at=None) if unread else rows)[:MOST_SHOWN])
    subjects = subjects_open_to(user, (item.subject for item in items))
    return [InboxRow(item, subjects[item.subject]) for item in items if item.subject in subjects]


def wants_mail(*, user: AbstractUser) -> bool:
    """Return whether the user wants the inbox by e-mail too."""
    return InboxChoice.objects.filter(user_id=user.pk, by_mail=True).exists()


def thread(subject: str) -> QuerySet[Comment]:
    """Return the comments on a subject, oldest first."""
    return Comment.objects.filter(subject=subject).select_related("by").order_by("pk")
