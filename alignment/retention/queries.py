"""Copies of chats' text: the calls about them, and the files that brought them."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from alignment.models.topic_prompt import TopicAnswer
from evaluation.models.runs import UNITS_LEFT, Run, Unit, UnitCall
from labeling.ingest.core.retention import TextCopy
from labeling.models.chats import Chat
from labeling.models.imports import ImportedRow


def units_at_work(chat: Any) -> QuerySet[Unit]:
    """Return the units of a chat that a running run has still to judge."""
    return Unit.objects.filter(chat=chat, run__state=Run.State.RUNNING, state__in=UNITS_LEFT)


def calls_about(due: Sequence[Chat]) -> Iterable[TextCopy]:
    """Return the calls about these chats, with all chats that say the same or got the same answer."""
    hashes = {chat.content_hash for chat in due}
    chats: dict[int, set[int]] = {}
    owners: list[tuple[int, int, str]] = []
    for model, chat_of in ((UnitCall, "unit__chat"), (TopicAnswer, "chat")):
        rows: Any = model._default_manager.exclude(call=None).order_by()
        own = rows.filter(**{f"{chat_of}__content_hash__in": hashes}).values("call")
        uses = rows.filter(call__in=own).distinct()
        owners += uses.values_list("call", chat_of, f"{chat_of}__content_hash")
    twins: dict[str, set[int]] = {}
    of_hash = Chat.objects.filter(content_hash__in={digest for *_, digest in owners})
    for pk, digest in of_hash.values_list("pk", "content_hash"):
        twins.setdefault(digest, set()).add(pk)
    for call, chat, digest in owners:
        chats.setdefault(call, set()).update((chat, *twins[digest]))
    return [TextCopy("model_call", call, frozenset(of)) for call, of in chats.items()]


def imports_of(due: Sequence[Chat]) -> Iterable[TextCopy]:
    """Yield the files of imports that brought these chats."""
    rows = ImportedRow.objects.filter(
        model=Chat._meta.label_lower,
        object_id__in=[chat.pk for chat in due],
        data_import__text_deleted_at=None,
    )
    found: dict[int, set[int]] = {}
    for row, chat in rows.values_list("data_import", "object_id"):
        found.setdefault(row, set()).add(chat)
    return [TextCopy("import_file", row, frozenset(chats)) for row, chats in found.items()]
