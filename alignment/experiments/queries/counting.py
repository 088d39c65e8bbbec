"""Reads of the worker that counts an experiment: runs, verdicts, chats and metric rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Value
from django.db.models.fields import CharField
from django.db.models.functions import Cast, Coalesce, Concat, NullIf
from django.utils import timezone

from alignment.experiments.core.unit_sums import ChatResult
from alignment.models.experiments import Experiment, ExperimentMetric, ExperimentRun
from evaluation.day_counts.queries import counted_criteria
from evaluation.models.day_counts import DayCount
from evaluation.models.runs import EVALUATIONS, FINISHED, Run, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember

AT_ONCE = 2000
AT = Coalesce("started_at", "created_at")
ENDED_AT = Coalesce("finished_at", "created_at")
# Of a chat without a unit: its own. NB: unit ids of senders never begin so, as the id is new here.
OWN_UNIT = "chat:"


def new_runs() -> QuerySet[Run]:
    """Return the finished evaluations that were not looked at since they ended, oldest first."""
    seen = ExperimentRun.objects.filter(run=OuterRef("pk"), ended_at=OuterRef("ended_at"))
    runs = Run.objects.filter(state__in=FINISHED, purpose__in=EVALUATIONS).annotate(ended_at=ENDED_AT)
    return runs.filter(~Exists(seen)).order_by("ended_at", "pk")


def experiments_with_deleted_runs() -> list[int]:
    """Return the experiments that have fewer runs than were counted: their import was undone."""
    rows = Experiment.objects.annotate(n=Count("runs")).filter(n__lt=F("counted_runs"))
    return list(rows.values_list("pk", flat=True))


def experiments_of(run_id: int) -> list[str]:
    """Return the experiments of a run's chats, from its counts by day; one query."""
    rows = DayCount.objects.filter(run=run_id).exclude(experiment="").order_by()
    return sorted(rows.values_list("experiment", flat=True).distinct())


def metric_rows(experiment: Experiment, run: Run) -> Iterator[ExperimentMetric]:
    """Yield a row for each pass or fail of a run on the experiment's chats, in the order of verdicts."""
    criteria = counted_criteria(run.pk)
    sampled = run.chat_set is not None and run.chat_set.kind == ChatSet.Kind.SAMPLE
    verdicts = Verdict.objects.filter(
        run=run, chat__experiment=experiment.key, state=Verdict.State.READ, value__isnull=False
    )
    last = 0
    while batch := list(verdicts.filter(pk__gt=last).order_by("pk").values_list(*_COLUMNS)[:AT_ONCE]):
        weights = _weights(run, {row[1] for row in batch}) if sampled else {}
        for _, chat, criterion, value, unit, variant, started_at, created_at in batch:
            at = started_at or created_at
            yield ExperimentMetric(
                experiment=experiment,
                run=run,
                chat_id=chat,
                criterion_id=criterion,
                unit=unit or f"{OWN_UNIT}{chat}",
                variant=variant,
                at=at,
                day=timezone.localdate(at),
                passed=value == criteria[criterion].passes_when,
                weight=weights.get(chat, 1.0),
                sampled=sampled,
            )
        last = batch[-1][0]


_COLUMNS = (
    *("pk", "chat_id", "criterion_id", "value", "chat__unit_id", "chat__variant"),
    *("chat__started_at", "chat__created_at"),
)


def _weights(run: Run, chats: set[int]) -> dict[int, float]:
    """Return the inverse inclusion probabilities of a sample's chats that have one; one query."""
    members = ChatSetMember.objects.filter(
        chat_set=run.chat_set_id, chat__in=chats, inclusion_probability__isnull=False
    )
    found = members.order_by().values_list("chat", "inclusion_probability")
    return {chat: 1 / probability for chat, probability in found if probability}


# ---------- all chats of an experiment


@dataclass(frozen=True, slots=True)
class VariantChats:
    """Chats of a variant, judged or not; `units` without those of several variants."""

    variant: str
    chats: int
    units: int
    first: date
    last: date


@dataclass(frozen=True)
class ExperimentChats:
    """The chats of an experiment by variant; `mixed` units have chats of several."""

    variants: tuple[VariantChats, ...]
    mixed: frozenset[str]
    without_unit: int
    without_variant: int


def experiment_chats(experiment: Experiment) -> ExperimentChats:
    """Count the chats since the start; four queries. A chat without a unit is one of its own."""
    rows: QuerySet[Any] = Chat.objects.filter(experiment=experiment.key).order_by()
    if experiment.starts_on:
        rows = rows.annotate(at=AT).filter(at__gte=day_begins(experiment.starts_on))
    placed = rows.exclude(variant="")
    mixed = placed.exclude(unit_id="").values("unit_id").annotate(n=Count("variant", distinct=True))
    mixed = mixed.filter(n__gt=1).values("unit_id")
    unit = Coalesce(NullIf("unit_id", Value("")), Concat(Value(OWN_UNIT), Cast("pk", CharField())))
    whole = Count(unit, distinct=True, filter=~Q(unit_id__in=mixed))
    counted = placed.values("variant").annotate(chats=Count("pk"), units=whole, first=Min(AT), last=Max(AT))
    none = rows.aggregate(unit=Count("pk", filter=Q(unit_id="")), variant=Count("pk", filter=Q(variant="")))
    return ExperimentChats(
        variants=tuple(
            VariantChats(variant, chats, units, timezone.localdate(first), timezone.localdate(last))
            for variant, chats, units, first, last in counted.order_by("variant").values_list(
                "variant", "chats", "units", "first", "last"
            )
        ),
        mixed=frozenset(mixed.values_list("unit_id", flat=True)),
        without_unit=none["unit"],
        without_variant=none["variant"],
    )


def day_begins(day: date) -> datetime:
    """Return the first moment of a day in the site's time zone."""
    return timezone.make_aware(datetime.combine(day, time()))


# ---------- metric rows


def counted_metrics(experiment: Experiment) -> QuerySet[ExperimentMetric]:
    """Return the rows that count: of sampled chats alone, once there are any."""
    rows = ExperimentMetric.objects.filter(experiment=experiment)
    return rows.filter(sampled=True) if experiment.sampled else rows


def results(experiment: Experiment) -> Iterator[ChatResult]:
    """Yield the results since the start, in the order of units; memory does not grow with them."""
    rows = counted_metrics(experiment).exclude(variant="")
    if experiment.starts_on:
        rows = rows.filter(day__gte=experiment.starts_on)
    columns = ("unit", "variant", "criterion_id", "day", "passed", "weight")
    found = rows.order_by("unit").values_list(*columns).iterator(chunk_size=AT_ONCE)
    return (ChatResult(*row) for row in found)


def pending_runs(experiment_id: int) -> QuerySet[ExperimentRun]:
    """Return the runs whose verdicts must be added, in the order in which they ended."""
    rows = ExperimentRun.objects.filter(experiment=experiment_id, added=False)
    return rows.select_related("run__chat_set").order_by("ended_at", F("run_id"))
