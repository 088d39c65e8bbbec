"""How much figures over held-out chats tell those who must not read them (docs/prompts.md)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, Subquery

from alignment.comparison.core.disclosure_limit import FEWEST
from alignment.models.regressions import RegressionTest
from evaluation.models.runs import RunChat, Verdict
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.people.queries.visibility import held_out, reads_holdout

ANSWERED = (Consensus.State.TRUE, Consensus.State.FALSE)
CONCEALED = f"figures on fewer than {FEWEST} holdout chats are for leads alone"


def held_counts(
    runs: Collection[int], *, criteria: Collection[int] | None = None
) -> dict[tuple[int, str], dict[str, int]]:
    """By run and criterion key: how many held-out chats people answered, of each split with any; one query.

    Answered is True or False: those are what a judge is compared on. `criteria` narrows it to these ids.
    """
    same = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    people = Consensus.objects.filter(state__in=ANSWERED, **same)
    split = RunChat.objects.filter(run=OuterRef("run"), chat=OuterRef("chat")).values("split")
    rows = Verdict.objects.filter(Exists(people), run__in=runs, chat__in=held_out())
    if criteria is not None:
        rows = rows.filter(criterion__in=criteria)
    kinds = rows.annotate(split=Subquery(split[:1])).values_list("run_id", "criterion__key", "split")
    found: dict[tuple[int, str], dict[str, int]] = {}
    for run, key, split_name, n in kinds.annotate(n=Count("pk")).order_by():
        found.setdefault((run, key), {})[split_name or ""] = n
    return found


def concealed(found: Mapping[str, Any], *, held: Mapping[str, int]) -> bool:
    """Whether a criterion's stored counts come from fewer than 10 chats of a split, held-out ones among them.

    `held` counts those of each split.
    """
    return bool(held) and min(*held.values(), found["n"] + found["left_out"]) < FEWEST


def tell(tests: Sequence[RegressionTest], *, user: User | AnonymousUser) -> None:
    """Take out of these rows what would tell the user of too few held-out chats; one query, none for leads.

    NB: the rows are for showing: never save them.
    """
    if reads_holdout(user=user):
        return
    counts = held_counts([test.baseline_run_id for test in tests])
    for test in tests:
        _conceal(test, {key: n for (run, key), n in counts.items() if run == test.baseline_run_id})


def _conceal(test: RegressionTest, held: Mapping[str, Mapping[str, int]]) -> None:
    if test.state == RegressionTest.State.CANCELLED:
        return  # ended before anything was counted
    body: dict[str, Any] = test.body or {"criteria": []}
    hidden = {row["key"] for row in body["criteria"] if concealed(row, held=held.get(row["key"], {}))}
    few = any(min(counts.values()) < FEWEST for counts in held.values())
    if not hidden and (test.body or not few or not test.reasons):
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
