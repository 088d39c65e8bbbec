"""Visible chats: nobody sees verdicts or others' labels of a chat that they still have to label."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.models.chats import Chat, ChatQuerySet, ChatSetMember, Split
from labeling.models.labels import Assignment, LabelingJob, through_with
from labeling.models.people import User

_State = Assignment.State


def chats_shown(*, user: User | AnonymousUser) -> ChatQuerySet:
    """Return the chats whose verdicts, labels, decisions and notes the user may read.

    Chats that are holdout in any set need `see_holdout`. A user who also labels does not see the chats that
    a job may still assign to them: those they hold a lease on, and those that need a label and that they
    have neither submitted nor skipped. Closed jobs assign nothing.
    """
    chats = Chat.objects.visible_to(user)
    return chats.exclude(pk__in=to_label(user=user)) if labels_too(user=user) else chats


def chats_hidden(*, user: User | AnonymousUser) -> list[QuerySet[Any]]:
    """Return subqueries of the chats that `chats_shown` excludes; faster on large tables."""
    hidden: list[QuerySet[Any]] = [] if reads_holdout(user=user) else [holdout_chats()]
    return [*hidden, to_label(user=user)] if labels_too(user=user) else hidden


def reads_holdout(*, user: User | AnonymousUser) -> bool:
    """Whether the user may read the chats that are holdout in any set."""
    return user.has_perm("labeling.see_holdout")


def holdout_chats() -> QuerySet[ChatSetMember, int]:
    """Return a subquery of the chats that are holdout in any set."""
    return ChatSetMember.objects.filter(split=Split.HOLDOUT).values_list("chat_id", flat=True)


def sees_every_chat(*, user: User | AnonymousUser) -> bool:
    """Whether `chats_shown` returns every chat for this user."""
    return reads_holdout(user=user) and not labels_too(user=user)


def labels_too(*, user: User | AnonymousUser) -> bool:
    """Whether the user is a rater, too."""
    # NB: check the account, not the token: a user remembers what they saw with another token.
    return isinstance(user, User) and user.is_allowed("label_chats")


def accounts_with(permission: str) -> QuerySet[User]:
    """Return the active accounts with a permission (`edit_prompts`), by name."""
    allowed = User.objects.with_perm(
        f"labeling.{permission}",
        include_superusers=False,
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return allowed.order_by("username")


def to_label(*, user: User | AnonymousUser) -> QuerySet[Any]:
    """Return a subquery of the chats that jobs may still assign to this user."""
    own = LabelingJob.objects.filter(Q(raters__user=user.pk) | Q(group__user=user.pk)).values("pk")
    through = Assignment.objects.filter(
        through_with(), job=OuterRef("job"), chat=OuterRef("chat"), rater__user=user.pk
    )
    open_slots = Assignment.objects.filter(
        Q(job__in=own) | Q(rater__user=user.pk), ~Exists(through), state__in=(_State.OPEN, _State.LEASED)
    )
    return open_slots.exclude(job__state=LabelingJob.State.CLOSED).values("chat")
