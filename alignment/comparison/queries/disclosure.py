"""Disclosure control: hide counts over too few holdout chats from users who may not read them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, Subquery

from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.models.regressions import RegressionTest
from evaluation.models.runs import RunChat, Verdict
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.people.queries.visibility import holdout_chats, reads_holdout

SMALL_COUNTS_HIDDEN = f"fewer than {MINIMUM_HOLDOUT_CHATS} holdout chats: only leads see their results"


def holdout_counts(
    runs: Collection[int], *, criteria: Collection[int] | None = None
) -> dict[tuple[int, str], dict[str, int]]:
    """Holdout chats with a consensus of True or False, by run and criterion key, then by split; one query.

    `criteria` limits the counts to these ids.
    """
    same = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    consensus = Consensus.objects.filter(state__in=Consensus.ANSWERED, **same)
    split = RunChat.objects.filter(run=OuterRef("run"), chat=OuterRef("chat")).values("split")
    rows = Verdict.objects.filter(Exists(consensus), run__in=runs, chat__in=holdout_chats())
    if criteria is not None:
        rows = rows.filter(criterion__in=criteria)
    kinds = rows.annotate(split=Subquery(split[:1])).values_list("run_id", "criterion__key", "split")
    counts: dict[tuple[int, str], dict[str, int]] = {}
    for run, key, split_name, n in kinds.annotate(n=Count("pk")).order_by():
        counts.setdefault((run, key), {})[split_name or ""] = n
    return counts


def is_small_count(counts: Mapping[str, Any], *, held: Mapping[str, int]) -> bool:
    """Whether a criterion's stored counts are over fewer than 10 chats of a split with holdout chats.

    `held` : number of holdout chats by split.
    """
    return bool(held) and min(*held.values(), counts["n"] + counts["left_out"]) < MINIMUM_HOLDOUT_CHATS


def hide_small_counts(tests: Sequence[RegressionTest], *, user: User | AnonymousUser) -> None:
    """Remove counts over too few holdout chats from these rows; one query, none for leads.

    NB: the rows are for display only, do not save them.
    """
    if reads_holdout(user=user):
        return
    counts = holdout_counts([test.baseline_run_id for test in tests])
    for test in tests:
        _conceal(test, {key: n for (run, key), n in counts.items() if run == test.baseline_run_id})


def _conceal(test: RegressionTest, held: Mapping[str, Mapping[str, int]]) -> None:
    if test.state == RegressionTest.State.CANCELLED:
        return  # cancelled before counting
    body: dict[str, Any] = test.body or {"criteria": []}
    hidden = {row["key"] for row in body["criteria"] if is_small_count(row, held=held.get(row["key"], {}))}
    few = any(min(counts.values()) < MINIMUM_HOLDOUT_CHATS for counts in held.values())
    if not hidden and (test.body or not few or not test.reasons):
        return
    reasons = [reason for reason in test.reasons if test.body and not _is_about(reason, hidden)]
    cautions = [caution for caution in body.get("cautions", ()) if not _is_about(caution, hidden)]
    shown = [row for row in body["criteria"] if row["key"] not in hidden]
    test.reasons = [*reasons, SMALL_COUNTS_HIDDEN]
    if test.body:
        less = {"reasons": test.reasons, "cautions": cautions, "criteria": shown, "advice": ""}
        test.body = test.body | less | dict.fromkeys(("bound", "more_labels", "pooled"))


def _is_about(reason: str, keys: Collection[str]) -> bool:
    """Whether a reason of the gate is about one of these criteria, or about all."""
    return (
        reason.startswith(("over all criteria", "no criterion")) or reason.split(" ")[0].rstrip(":") in keys
    )
