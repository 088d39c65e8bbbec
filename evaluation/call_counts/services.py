"""Counts attempts that ended, a little later and once each, and leases that were lost."""

from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluation.call_counts.queries import added, attempt_sums, stored_sums
from evaluation.models.call_counts import CallCount, WorkCounter
from evaluation.models.runs import Attempt

# Transactions that end attempts are over after this time, on machines whose clocks differ a little.
LAG = timedelta(seconds=60)
EVERY = timedelta(seconds=30)
AT_ONCE = 20_000


def calls_count(*, now: datetime | None = None) -> None:
    """Add the attempts that ended since the last count to the counts; of many, the first AT_ONCE."""
    until = (now or timezone.now()) - LAG
    seen, _ = WorkCounter.objects.get_or_create(name=WorkCounter.Name.CALLS)
    if seen.counted_to and until - seen.counted_to < EVERY:
        return
    with transaction.atomic():
        # NB: a second worker waits here, and finds nothing left to count.
        counter = WorkCounter.objects.select_for_update().get(pk=seen.pk)
        ended = Attempt.objects.filter(ended_at__lte=until)
        if counter.counted_to:
            ended = ended.filter(ended_at__gt=counter.counted_to)
        later = ended.order_by("ended_at").values_list("ended_at", flat=True)[AT_ONCE : AT_ONCE + 1]
        until = next(iter(later), None) or until
        new = attempt_sums(ended.filter(ended_at__lte=until))
        known = stored_sums()
        counts = added({one.key: known[one.key] for one in new if one.key in known}, new)
        CallCount.objects.bulk_create(
            [CallCount(**asdict(one)) for one in counts.values()],
            update_conflicts=True,
            unique_fields=["endpoint", "model", "outcome"],
            update_fields=["calls", "prompt_tokens", "completion_tokens", "cost_usd", "last_at"],
        )
        WorkCounter.objects.filter(pk=counter.pk).update(counted_to=max(until, counter.counted_to or until))


def leases_lost_add(number: int) -> None:
    """Count leases that were taken back from workers that ended or fell silent."""
    WorkCounter.objects.get_or_create(name=WorkCounter.Name.LEASES_LOST)
    rows = WorkCounter.objects.filter(name=WorkCounter.Name.LEASES_LOST)
    rows.update(value=F("value") + number)
