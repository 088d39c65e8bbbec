"""Which other chat lends its briefs to an ablated debate."""

from evaluation.core.types import Chat
from evaluation.models.runs import RunChat
from evaluation.runner.units import core_chat


def other_chat(*, run_id: int, chat_id: int) -> Chat | None:
    """The chat after this one in the run's order, the first after the last; None in a run of one chat."""
    others = RunChat.objects.filter(run_id=run_id).select_related("chat").order_by("id")
    own = RunChat.objects.get(run_id=run_id, chat_id=chat_id)
    row = others.filter(pk__gt=own.pk).first() or others.exclude(pk=own.pk).first()
    return core_chat(row.chat) if row else None
