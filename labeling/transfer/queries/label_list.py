"""Submitted labels for leads."""

from django.db.models import QuerySet

from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown


def labels_for(
    *,
    user: User,
    chat_set: ChatSet | None = None,
    criterion: Criterion | None = None,
    rater: Rater | None = None,
) -> QuerySet[Label]:
    """
    Return the submitted labels on chats that the user may see, with the related rows of a line.

    Those of a chat set are labels on its chats, by its rubric.
    """
    labels: QuerySet[Label] = Label.objects.filter(
        state=Label.State.SUBMITTED, chat__in=chats_shown(user=user).values("pk")
    )
    if chat_set:
        members = ChatSetMember.objects.filter(chat_set=chat_set).values("chat")
        labels = labels.filter(chat__in=members, criterion__rubric=chat_set.rubric_id)
    if criterion:
        labels = labels.filter(criterion=criterion)
    if rater:
        labels = labels.filter(rater=rater)
    rows = labels.select_related("chat", "criterion", "rater", "version", "carried_from")
    return rows.only(
        *("value", "rationale", "evidence", "post_reveal", "given_at", "active_ms", "chat__external_id"),
        *("criterion__key", "rater__name", "rater__kind", "version__number", "carried_from__key"),
    )
