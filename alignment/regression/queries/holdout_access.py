"""Uses of holdouts by tests. Each use makes their results less reliable."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max

from alignment.models.regressions import HoldoutOpening, RegressionTest
from alignment.regression.core import GatePolicy
from alignment.regression.queries.policy_page import policy_revised
from alignment.regression.queries.tests import gate_policy
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion


@dataclass(frozen=True, slots=True)
class HoldoutUse:
    """Uses of a set's holdout for one criterion; `often` from the policy's warning threshold."""

    chat_set: str
    criterion: str
    times: int
    last: datetime
    often: bool


def holdout_uses(
    *, criteria: Iterable[Criterion], chat_set: ChatSet | None = None, policy: GatePolicy | None = None
) -> list[HoldoutUse]:
    """Count the uses of the holdout by set and criterion, most first; one query, two without `policy`.

    policy : sets the warning threshold; by default the current policy.
    """
    rows = HoldoutOpening.objects.filter(criterion__in=list(criteria))
    if chat_set is not None:
        rows = rows.filter(chat_set=chat_set)
    named = rows.values_list("chat_set__name", "criterion__key").annotate(n=Count("pk"), last=Max("at"))
    counted = list(named.order_by("-n", "chat_set__name", "criterion__key"))
    if policy is None:
        chosen = policy_revised() if counted else None
        policy = gate_policy(chosen) if chosen else GatePolicy()
    return [
        HoldoutUse(chat_set=name, criterion=key, times=n, last=last, often=n >= policy.openings_warning)
        for name, key, n, last in counted
    ]


def openings_of(test: RegressionTest) -> list[HoldoutUse]:
    """Return the uses of the holdout by criterion, most first; empty if the test does not use it."""
    criteria = Criterion.objects.filter(pk__in=test.openings.values("criterion"))
    return holdout_uses(criteria=criteria, chat_set=test.chat_set, policy=gate_policy(test.policy))


def holdout_warning(test: RegressionTest) -> str:
    """Return a warning if the test's holdout has been used often; '' if not."""
    often = [use for use in openings_of(test) if use.often]
    if not often:
        return ""
    most, others = often[0], len(often) - 1
    more = f" and {others} other criteri{'a' if others > 1 else 'on'}" if others else ""
    by = f"by {test.created_by}" if test.created_by else "without a name (--by NAME)"
    return (
        f"the holdout of {most.chat_set} was used {most.times} times for {most.criterion}{more}, this time"
        f" {by}. Each use makes a pass less reliable: test on dev, and label new chats for the holdout"
    )
