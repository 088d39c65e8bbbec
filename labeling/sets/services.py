"""Chat sets: their kind, which changes only while no job depends on it, and chats added by hand."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction

from common.problems import InputProblem, shown
from labeling.chats.services.chat_sets import MembersImport, chat_set_ensure
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.people.services.audit import audit
from labeling.sets.queries import kind_choices

# Chats added by hand have been read, so they are never held out.
SPLITS_BY_HAND = (Split.DEV, Split.TRAIN)


class UnconfirmedError(Exception):
    """The change has an effect on blindness that the lead must confirm; the message says which."""


@dataclass(frozen=True, slots=True)
class AddedChats:
    """The set, the number of chats added, and of those that were in it already and stay as they are."""

    chat_set: ChatSet
    added: int
    kept: int


@transaction.atomic
def chats_add(
    *, name: str, new: bool, rubric: Rubric, chats: Collection[int], split: str, by: User | None
) -> AddedChats:
    """Add chats to the set of that name, at its end, and log it. `new` : the set is created.

    Raises InputProblem where the name is taken, unknown or empty, where the set is a sample or of another
    rubric, and where `split` is train and a chat is holdout in some set.
    """
    row = ChatSet.objects.select_for_update(no_key=True, of=("self",)).filter(name=name).first()
    if new and row is not None:
        raise InputProblem(f"There is a set {shown(name)} already. Choose it in the list.")
    if row is None and not new:
        raise InputProblem(f"There is no set {shown(name)}.")
    if row is not None and row.rubric_id != rubric.pk:
        raise InputProblem(f"The set {shown(name)} has another rubric.")
    if row is not None and row.kind == ChatSet.Kind.SAMPLE:
        raise InputProblem(f"The set {shown(name)} is a random sample. Choose another set.")
    held = ChatSetMember.objects.filter(chat__in=chats, split=Split.HOLDOUT)
    if split == Split.TRAIN and held.exists():
        raise InputProblem("A selected chat is holdout in some set. Add it to dev, or deselect it.")
    try:
        chat_set = row or chat_set_ensure(name=name, rubric_name=rubric.name)
    except InputProblem as wrong:
        raise InputProblem(str(wrong).removeprefix("--set: ").capitalize()) from wrong
    members = MembersImport(chat_set, {split: 1.0})
    members.add(dict.fromkeys(sorted(chats)))
    audit(actor=by, verb="chats added", obj=chat_set, name=name, split=split, chats=members.added)
    return AddedChats(chat_set, members.added, members.kept)


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
