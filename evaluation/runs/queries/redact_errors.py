"""Redacts errors: an endpoint's words about a request may repeat the chat in it."""

import re
from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser

from evaluation.models.runs import Run, RunChat
from labeling.models.chats import ChatSetMember, Split
from labeling.models.people import User

# Text after a status, or in brackets at the end, may be the endpoint's own.
_ITS_WORDS = re.compile(r"(?<=HTTP \d{3}):.*|\s*\([^()]*\)\s*$", re.DOTALL)


def redact_errors(runs: Sequence[Run], *, user: User | AnonymousUser) -> None:
    """Redact these rows' errors to their kind if the user may not read all the run's chats; one query.

    NB: the rows are for display; never save them.
    """
    hidden = _covering_holdout(runs, user=user)
    for run in runs:
        if run.pk in hidden:
            run.error = kind_alone(run.error)


def may_read_errors(run: Run, *, user: User | AnonymousUser) -> bool:
    """Return whether the user may read the run's errors in full; one query, none for leads."""
    return not _covering_holdout([run], user=user)


def kind_alone(error: str) -> str:
    """Return an error without words that may be the endpoint's.

    >>> kind_alone("bad_request: HTTP 400: the endpoint rejects the request (bad_word)")
    'bad_request: HTTP 400'
    >>> kind_alone("cancelled by otto")
    'cancelled by otto'
    """
    return _ITS_WORDS.sub("", error)


def _covering_holdout(runs: Sequence[Run], *, user: User | AnonymousUser) -> set[int]:
    if user.has_perm("labeling.see_holdout"):
        return set()
    held_out = ChatSetMember.objects.filter(split=Split.HOLDOUT).values("chat")
    rows = RunChat.objects.filter(run__in=[run.pk for run in runs], chat__in=held_out)
    return set(rows.values_list("run_id", flat=True).distinct())
