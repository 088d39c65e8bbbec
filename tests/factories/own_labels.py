"""Chats that a reader is still to label."""

from typing import Any

from labeling.jobs.services import job_open
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.people.services.roles import rater_for
from tests.factories.compared_runs import Compared


def to_label(compared: Compared, *places: int) -> Any:
    """A job that wants this user's labels on the chats at these places."""
    chat_set = ChatSet.objects.create(name="more", rubric=compared.rubric)
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=chat_set, chat=compared.chat(n), split="train", position=n) for n in places
    )
    user = User.objects.get(username="both")
    return job_open(
        chat_set=chat_set,
        name="October",
        criteria=compared.criteria,
        raters=[rater_for(user=user)],
        overlap=1,
        by=None,
    )
