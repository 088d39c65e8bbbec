"""The kind of a chat set: how jobs may use it. A kind changes only while no job depends on it."""

from django.db import transaction

from common.problems import InputProblem
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.services.audit import audit
from labeling.sets.queries import kind_choices


class UnconfirmedError(Exception):
    """The change has an effect on blindness that the lead must confirm; the message says which."""


@transaction.atomic
def chat_set_kind_change(*, chat_set: ChatSet, kind: str, by: User | None, confirmed: bool) -> ChatSet:
    """Change the kind of a set and log it; the same kind changes nothing.

    Raises InputProblem where the change is not safe, UnconfirmedError where it needs `confirmed`.
    """
    row = ChatSet.objects.select_for_update(no_key=True, of=("self",)).get(pk=chat_set.pk)
    if kind == row.kind:
        return row
    choice = next((one for one in kind_choices(chat_set=row) if one.kind == kind), None)
    if choice is None:
        raise InputProblem("A sample is drawn on the page of a label plan, not chosen here.")
    if choice.refusal:
        raise InputProblem(choice.refusal)
    if choice.warning and not confirmed:
        raise UnconfirmedError(choice.warning)
    audit(actor=by, verb="kind changed", obj=row, name=row.name, kind={"old": row.kind, "new": kind})
    row.kind = kind
    row.save(update_fields=["kind"])
    return row
