"""Which chats are open to whom: nobody reads verdicts or labels of a chat that they are still to label."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.labels import Assignment, LabelingJob, through_with
from labeling.models.people import User

_State = Assignment.State


def chats_shown(*, user: User | AnonymousUser) -> QuerySet[Chat]:
    """The chats on which the user may read verdicts, labels, decisions and notes.

    Those that are holdout in any set need `see_holdout`. Who labels, too, does not get to see the chats that
    a job that is not closed may still ask of them: those they hold, and those that want a label and that they
    have neither submitted nor skipped.
    """
    chats = Chat.objects.visible_to(user)
    return chats.exclude(pk__in=to_label(user=user)) if labels_too(user=user) else chats


def chats_hidden(*, user: User | AnonymousUser) -> list[QuerySet[Any]]:
    """Subqueries of the chats that `chats_shown` leaves out: in a large table they are found sooner."""
    hidden: list[QuerySet[Any]] = [] if reads_holdout(user=user) else [held_out()]
    return [*hidden, to_label(user=user)] if labels_too(user=user) else hidden


def reads_holdout(*, user: User | AnonymousUser) -> bool:
    """Whether the user may read the chats that are holdout in any set."""
    return user.has_perm("labeling.see_holdout")


def held_out() -> QuerySet[ChatSetMember, int]:
    """A subquery of the chats that are holdout in any set."""
    return ChatSetMember.objects.filter(split=Split.HOLDOUT).values_list("chat_id", flat=True)


def sees_every_chat(*, user: User | AnonymousUser) -> bool:
    """Whether there is no need to look which chats are shown."""
    return reads_holdout(user=user) and not labels_too(user=user)


def labels_too(*, user: User | AnonymousUser) -> bool:
    """Whether the user is one of those who label."""
    # NB: the account, not the token of the request: a person remembers what another token showed them.
    return isinstance(user, User) and user.is_allowed("label_chats")


def to_label(*, user: User | AnonymousUser) -> QuerySet[Any]:
    """A subquery of the chats that a job that is not closed may still ask of who labels."""
    own = LabelingJob.objects.filter(Q(raters__user=user.pk) | Q(group__user=user.pk)).values("pk")
    through = Assignment.objects.filter(
        through_with(), job=OuterRef("job"), chat=OuterRef("chat"), rater__user=user.pk
    )
    wanted = Assignment.objects.filter(
        Q(job__in=own) | Q(rater__user=user.pk), ~Exists(through), state__in=(_State.OPEN, _State.LEASED)
    )
    return wanted.exclude(job__state=LabelingJob.State.CLOSED).values("chat")
