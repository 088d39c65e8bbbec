"""The chats of a day as a sampling frame, the sample that a plan takes of it, and the days that are due."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Case, Count, QuerySet, TextField, Value, When
from django.db.models.functions import MD5, Cast, Collate, Concat
from django.utils import timezone

from common.sql import one_moment
from labeling.chats.core.allocation import AllocationRule
from labeling.models.chats import Chat, Topic
from labeling.models.people import User
from labeling.models.sampling import SamplePlan
from labeling.sampling.core import (
    JUDGE,
    NO_LIMIT,
    SampleAllocation,
    SampledChat,
    Shortfall,
    TopicStratum,
    allocate,
    key_limit,
    key_prefix,
    sample_keyed,
)

# A missed night is caught up for so many days.
CATCH_UP_DAYS = 7
ROWS_AT_ONCE = 5000

SHORTFALLS: Mapping[str, str] = {
    Shortfall.FEW_CHATS: "There were fewer chats than planned: all were taken.",
    Shortfall.CAPPED: "Topics at their maximum left the sample smaller.",
    Shortfall.MINIMUM_REDUCED: "The sample is too small for the minimum of all topics.",
    Shortfall.UNSAMPLED_TOPICS: "Some topics have chats but none in the sample: rates over all need each.",
}


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How many chats a night takes, and by which rule; `maximum` None = no cap of a topic."""

    chats: int
    rule: str
    minimum: int = 0
    maximum: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what a draw stores."""
        names = ("chats", "rule", "minimum", "maximum")
        return {name: getattr(self, name) for name in names}

    def allocated(self, sizes: Mapping[str, int], spreads: Mapping[str, float]) -> SampleAllocation:
        """Return the allocation to topics of these sizes; a topic without a spread has the largest."""
        topics = (TopicStratum(key, size, spreads.get(key, 0.5)) for key, size in sizes.items())
        return allocate(
            topics,
            self.chats,
            rule=AllocationRule(self.rule),
            minimum=self.minimum,
            maximum=self.maximum,
        )


@dataclass(frozen=True, slots=True)
class DaySample:
    """The sample of a day: its allocation, and the chats in random order."""

    allocation: SampleAllocation
    chats: list[SampledChat]

    @property
    def frame_size(self) -> int:
        """Chats of the day that could be sampled."""
        return sum(stratum.size for stratum in self.allocation.strata)


def size_of(plan: SamplePlan) -> SampleSize:
    """Return a plan's sample size and rule."""
    return SampleSize(plan.chats, plan.rule, plan.minimum, plan.maximum)


def shortfall_texts(shortfalls: Sequence[str]) -> list[str]:
    """Return why a sample is not the one that was asked for, in sentences."""
    return [SHORTFALLS[kind] for kind in shortfalls if kind in SHORTFALLS]


# ---------- days ----------


def yesterday(now: datetime | None = None) -> date:
    """Return the last whole day in the site's time zone."""
    return timezone.localdate(now or timezone.now()) - timedelta(days=1)


def due_days(plan: SamplePlan, *, now: datetime) -> list[date]:
    """Return the days whose sample is due and still missing, the oldest first.

    A day is due from the plan's time of the next day on. Missed days are due for a week.
    """
    last = yesterday(now)
    if timezone.localtime(now).time() < plan.starts_at:
        last -= timedelta(days=1)
    first = max(plan.first_day, last - timedelta(days=CATCH_UP_DAYS - 1))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    drawn = set(plan.draws.filter(day__in=days).values_list("day", flat=True)) if days else set()
    return [day for day in days if day not in drawn]


# ---------- chats of a day ----------


def day_frame(day: date) -> QuerySet[Chat]:
    """Return the chats that arrived on a day and that no sample, no chat set and no label has taken.

    Somebody chose the chats of sets, perhaps for a holdout.
    """
    begins = timezone.make_aware(datetime.combine(day, time.min))
    ends = timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min))
    return Chat.objects.filter(sampled_at=None, created_at__gte=begins, created_at__lt=ends)


def topic_sizes(day: date) -> dict[str, int]:
    """Return how many chats of a day could be sampled, by topic; two queries."""
    sizes = _sizes(day_frame(day))
    keys = _keys(sizes)
    return {keys[topic]: n for topic, n in sizes.items()}


def _sizes(frame: QuerySet[Chat]) -> dict[int, int]:
    rows = frame.order_by().values_list("topic_id").annotate(n=Count("pk"))
    return dict(rows)


def _keys(sizes: Mapping[int, int]) -> dict[int, str]:
    return dict(Topic.objects.filter(pk__in=sizes).values_list("pk", "key"))


def day_sample(day: date, *, size: SampleSize, spreads: Mapping[str, float], seed: int) -> DaySample:
    """Return the sample of a day. The database orders the chats: only a little more than them is read.

    The whole sample is of one moment of the database.
    """
    with one_moment():
        frame = day_frame(day)
        sizes = _sizes(frame)
        keys = _keys(sizes)
        allocation = size.allocated({keys[topic]: n for topic, n in sizes.items()}, spreads)
        limits = {stratum.key: key_limit(stratum.n, stratum.size) for stratum in allocation.strata}
        by_limit: dict[str, list[int]] = {}
        for topic, key in keys.items():
            if limits[key]:
                by_limit.setdefault(limits[key], []).append(topic)
        sampled = sample_keyed(_keyed(frame, keys, by_limit, seed=seed), allocation)
        if sampled is None:  # one time in a billion
            by_limit = {NO_LIMIT: list(keys)}
            sampled = sample_keyed(_keyed(frame, keys, by_limit, seed=seed), allocation)
    return DaySample(allocation, sampled or [])


def _keyed(
    frame: QuerySet[Chat], keys: Mapping[int, str], by_limit: Mapping[str, list[int]], *, seed: int
) -> Iterator[tuple[str, int, str]]:
    """Yield key, id and topic of the chats whose key is below the limit of their topic."""
    if not by_limit:
        return
    text = TextField()
    place: Any = MD5(Concat(Value(key_prefix(seed, JUDGE)), Cast("pk", text), output_field=text))
    if connection.vendor == "postgresql":
        place = Collate(place, "C")  # else the database's language compares the keys, which takes long
    limit = Case(
        *(When(topic_id__in=topics, then=Value(highest)) for highest, topics in by_limit.items()),
        default=Value(""),
        output_field=text,
    )
    rows = frame.annotate(place=place).filter(place__lt=limit).order_by()
    for key, chat, topic in rows.values_list("place", "pk", "topic_id").iterator(ROWS_AT_ONCE):
        yield key, chat, keys[topic]


# ---------- raters ----------


def labelling_accounts() -> QuerySet[User]:
    """Return the accounts that may label chats, by name.

    NB: a judge's code reads it, so it imports nothing of the labels.
    """
    allowed = User.objects.with_perm(
        "labeling.label_chats",
        include_superusers=False,
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return allowed.select_related("rater").order_by("username")


def labelling_groups() -> QuerySet[Group]:
    """Return the groups with accounts that may label chats, by name."""
    return Group.objects.filter(user__in=labelling_accounts()).distinct().order_by("name")


def team_size(*, raters: list[User], group: Group | None) -> int:
    """Count the accounts and the group's members that may label, each once."""
    members = labelling_accounts().filter(groups=group).values_list("pk", flat=True) if group else ()
    return len({rater.pk for rater in raters} | set(members))
