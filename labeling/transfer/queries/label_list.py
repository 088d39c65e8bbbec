"""Submitted labels for leads, filtered by names as in files."""

from typing import TypeVar

from django.db.models import QuerySet

from common.problems import FieldProblem, shown
from labeling.chats.queries import chat_set_named
from labeling.models.chats import ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

Row = TypeVar("Row")


def labels_for(*, user: User, filters: dict[str, str]) -> QuerySet[Label]:
    """
    Return the submitted labels on chats that the user may see, with the related rows of a line.

    Parameters
    ----------
    filters : any of set (name), criterion (key) and rater (name).

    Raises FieldProblem for an unknown name.
    """
    labels: QuerySet[Label] = Label.objects.filter(
        state=Label.State.SUBMITTED, chat__in=chats_shown(user=user).values("pk")
    )
    if "set" in filters:
        labels = _of_set(labels, filters["set"])
    if "criterion" in filters:
        criterion = Criterion.objects.filter(key=filters["criterion"]).first()
        labels = labels.filter(criterion=_row_or_problem(criterion, "criterion", filters["criterion"]))
    if "rater" in filters:
        rater = Rater.objects.filter(name=filters["rater"]).first()
        labels = labels.filter(rater=_row_or_problem(rater, "rater", filters["rater"]))
    rows = labels.select_related("chat", "criterion", "rater", "version", "carried_from")
    return rows.only(
        *("value", "rationale", "evidence", "post_reveal", "given_at", "active_ms", "chat__external_id"),
        *("criterion__key", "rater__name", "rater__kind", "version__number", "carried_from__key"),
    )


def _of_set(labels: QuerySet[Label], name: str) -> QuerySet[Label]:
    chat_set = _row_or_problem(chat_set_named(name), "set", name)
    members = ChatSetMember.objects.filter(chat_set=chat_set).values("chat")
    return labels.filter(chat__in=members, criterion__rubric=chat_set.rubric_id)


def _row_or_problem(row: Row | None, field: str, name: str) -> Row:
    if row is None:
        raise FieldProblem(field, f"there is no {field} {shown(name)}")
    return row
