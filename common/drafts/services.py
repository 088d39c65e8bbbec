"""Save and delete drafts of forms."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from common.models import FormDraft

KEPT = timedelta(days=30)
MOST_DRAFTS = 200  # of one user; the oldest are deleted


class DraftConflict(Exception):
    """Another tab has saved this draft since; `draft` is what it saved, None if it was deleted."""

    def __init__(self, draft: FormDraft | None) -> None:
        super().__init__("another tab has changed this draft")
        self.draft = draft


def form_draft_save(
    *, user_id: int, key: str, values: dict[str, list[str]], base: str, revision: int
) -> FormDraft:
    """Save a draft; `revision` is that of the draft known to the page, 0 for none. Raises DraftConflict."""
    now = timezone.now()
    new: dict[str, Any] = {"values": values, "base": base, "updated_at": now}
    known = FormDraft.objects.filter(user_id=user_id, key=key)
    if revision and known.filter(revision=revision).update(**new, revision=F("revision") + 1):
        return known.get()
    if (other := known.first()) is not None or revision:
        raise DraftConflict(other)
    try:
        with transaction.atomic():
            row = FormDraft.objects.create(user_id=user_id, key=key, revision=1, **new)
    except IntegrityError:
        raise DraftConflict(known.first()) from None
    _forget_old(user_id)
    return row


def form_draft_delete(*, user_id: int, key: str) -> None:
    """Delete a draft; without one do nothing."""
    FormDraft.objects.filter(user_id=user_id, key=key).delete()


def _forget_old(user_id: int) -> None:
    rows = FormDraft.objects.filter(user_id=user_id)
    rows.filter(updated_at__lt=timezone.now() - KEPT).delete()
    beyond = rows.order_by("-updated_at", "-pk").values_list("pk", flat=True)[MOST_DRAFTS:]
    rows.filter(pk__in=list(beyond)).delete()
