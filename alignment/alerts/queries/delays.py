"""What thresholds and numbers of anchors amount to, for the pages where they are chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from alignment.alerts.core.attribution import Policy
from alignment.alerts.core.delays import Delay, alarm_in_a_month, anchor_delay, guard_nights, rate_delay
from alignment.alerts.core.plan_watch import Settings
from alignment.alerts.core.rate_cusum import RunLength, run_length
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion
from labeling.models.sampling import SamplePlan

EFFECTS = (0.05, 0.10, 0.20)
BOT_EFFECTS = (0.04, 0.08)
# A rate, and chats a week, for the figures of a plan that has judged nothing yet.
RATE, CHATS = 0.9, 500


@dataclass(frozen=True)
class AnchorPlan:
    """What a set of anchors detects.

    labelled : least and most anchors with a consensus over the criteria. passing : least anchors of a
    criterion whose consensus passes; the delays are for that many, or half of the anchors without labels.
    """

    anchors: int
    labelled: tuple[int, int]
    passing: int
    delays: Sequence[Delay]
    guard: int | None


def anchor_plan(*, chat_set: ChatSet, anchors: int, settings: Settings) -> AnchorPlan:
    """Return what the first `anchors` chats of a set detect; three queries."""
    members = chat_set.members.filter(chat__text_deleted_at=None).order_by("position")
    chats = list(members.values_list("chat", flat=True)[:anchors])
    criteria = Criterion.objects.filter(rubric=chat_set.rubric_id, state=Criterion.State.ACTIVE)
    passes_when = dict(criteria.order_by("versions__number").values_list("pk", "versions__passes_when"))
    decided = Consensus.objects.filter(
        chat__in=chats,
        criterion__in=list(passes_when),
        state__in=Consensus.ANSWERED,
    )
    counts = decided.order_by().values("criterion")
    rows = counts.annotate(true=Count("pk", filter=Q(state=Consensus.State.TRUE)), n=Count("pk"))
    numbers = dict.fromkeys(passes_when, (0, 0))
    for pk, true, n in rows.values_list("criterion", "true", "n"):
        numbers[pk] = (n, true if passes_when[pk] else n - true)
    labelled = [n for n, _ in numbers.values()] or [0]
    passing = min((good for _, good in numbers.values()), default=0) or len(chats) // 2
    family = max(settings.family, len(passes_when), 1)
    delays = [
        anchor_delay(
            effect,
            anchors=passing,
            criteria=family,
            policy=settings.policy,
            nights=settings.flip_nights,
            tolerance=settings.tolerance,
        )
        for effect in EFFECTS
    ]
    guard = guard_nights(anchors=passing, policy=settings.policy)
    return AnchorPlan(len(chats), (min(labelled), max(labelled)), passing, delays, guard)


@dataclass(frozen=True)
class Consequences:
    """What thresholds amount to, for the criteria watched and the largest active plan.

    month, year : largest probability of a false alarm. mark : weeks and chances of a false mark of one chart.
    """

    criteria: int
    chats: int
    month: float
    year: float
    mark: RunLength
    delays: Sequence[Delay]

    @property
    def month_words(self) -> str:
        """Return the probability in a month with a digit after the point."""
        return f"{100 * self.month:.1f}%"

    @property
    def mark_words(self) -> str:
        """Return the probability of a false mark of one chart in a month."""
        return f"{100 * self.mark.in_a_month:.1f}%"


def consequences(settings: Settings) -> Consequences:
    """Return what these settings amount to; one query."""
    plans = SamplePlan.objects.filter(state=SamplePlan.State.ACTIVE).order_by("-chats")
    chats = plans.values_list("chats", flat=True).first() or CHATS
    policy: Policy = settings.policy
    delays = [
        rate_delay(
            effect,
            chats=chats,
            criteria=settings.family,
            policy=policy,
            rate=RATE,
            nights=settings.nights,
            tolerance=settings.tolerance,
        )
        for effect in BOT_EFFECTS
    ]
    mark = run_length(RATE, baseline=RATE, n=min(7 * chats, 2000), limit=settings.mark_limit)
    return Consequences(settings.family, chats, alarm_in_a_month(policy), policy.alpha, mark, delays)
