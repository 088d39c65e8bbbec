"""How much figures over held-out chats tell those who must not read them (docs/prompts.md)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count

from alignment.core.regression.topics import FEWEST
from alignment.models.regressions import RegressionTest
from evaluation.models.runs import RunChat
from labeling.models.people import User
from labeling.selectors.blind import held_out, reads_holdout

CONCEALED = f"figures on fewer than {FEWEST} holdout chats are for leads alone"


def held_chats(tests: Collection[RegressionTest]) -> dict[int, int]:
    """By id of the test, how many held-out chats it covers; one query."""
    runs = [test.baseline_run_id for test in tests]
    rows = RunChat.objects.filter(run__in=runs, chat__in=held_out()).values_list("run")
    counts = dict(rows.annotate(n=Count("pk")).order_by())
    return {test.pk: counts.get(test.baseline_run_id, 0) for test in tests}


def concealed(found: Mapping[str, Any], *, held: int) -> bool:
    """Whether a criterion's stored counts come from fewer than 10 chats, held-out ones among them."""
    return held > 0 and min(held, found["n"] + found["left_out"]) < FEWEST


def tell(tests: Sequence[RegressionTest], *, user: User | AnonymousUser) -> None:
    """Take out of these rows what would tell the user of too few held-out chats; one query, none for leads.

    NB: the rows are for showing: never save them.
    """
    if reads_holdout(user=user):
        return
    held = held_chats(tests)
    for test in tests:
        _conceal(test, held[test.pk])


def _conceal(test: RegressionTest, held: int) -> None:
    body: dict[str, Any] = test.body or {"criteria": []}
    hidden = {found["key"] for found in body["criteria"] if concealed(found, held=held)}
    if not hidden and (test.body or not 0 < held < FEWEST or not test.reasons):
        return
    told = [reason for reason in test.reasons if test.body and not _is_about(reason, hidden)]
    shown = [found for found in body["criteria"] if found["key"] not in hidden]
    test.reasons = [*told, CONCEALED]
    if test.body:
        less = {"reasons": test.reasons, "criteria": shown, "pooled": None, "more_labels": None}
        test.body = test.body | less


def _is_about(reason: str, keys: Collection[str]) -> bool:
    """Whether a reason of the gate names one of these criteria, or sums up all of them."""
    return (
        reason.startswith(("over all criteria", "no criterion")) or reason.split(" ")[0].rstrip(":") in keys
    )
