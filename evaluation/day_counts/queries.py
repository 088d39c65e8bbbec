"""Counts of a run's verdicts by day: computed from the verdicts, and as stored."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.utils import timezone

from common.jsonl import in_batches
from evaluation.day_counts.core import Answer, CountedCriterion, Place, Tally
from evaluation.models.day_counts import PLACE, DayCount, DayScore
from evaluation.models.runs import ANCHORS, TESTS, Run, Unit, Verdict

CHATS_AT_ONCE = 1000
# A chat's metadata field with the version of the bot that answered.
BOT_VERSION = "bot_version"
COUNTS = ("chats", "passed", "failed", "not_applicable")
SCORES = ("chats", "answers", "passes", "answers_squared", "passes_squared", "products")
# Runs that ask how a judge or a prompt does say nothing about the bot.
NOT_COUNTED = (*TESTS, Run.Purpose.TRY, ANCHORS)
ChatAnswers = tuple[int, list[Answer]]


def is_counted(run_id: int) -> bool:
    """Return whether the verdicts of this run are counted."""
    return Run.objects.filter(pk=run_id).exclude(purpose__in=NOT_COUNTED).exists()


def counted_criteria(run_id: int, *, models: Apps | Any = apps) -> dict[int, CountedCriterion]:
    """Return the criteria of a run by id, as its judge's versions say when they pass, else the newest.

    `models` : the registry of a migration, whose tables are older.
    """
    versions = models.get_model("labeling", "CriterionVersion")
    prompts = models.get_model("evaluation", "JudgePrompt")
    own = prompts.objects.filter(judge__runs=run_id, criterion=OuterRef("pk"))
    newest = versions.objects.filter(criterion=OuterRef("pk")).order_by("-number")
    rows = models.get_model("labeling", "Criterion").objects.annotate(
        own=Subquery(own.values("criterion_version__passes_when")[:1]),
        newest=Subquery(newest.values("passes_when")[:1]),
    )
    found = rows.order_by().values_list("pk", "dimension__key", "tier", "critical", "own", "newest")
    return {
        pk: CountedCriterion(dimension, bool(newest if own is None else own), tier == "subjective", critical)
        for pk, dimension, tier, critical, own, newest in found
    }


def sampled_day(run_id: int, *, models: Apps | Any = apps) -> date | None:
    """Return the day whose chats the run's set is a plan's sample of; None for any other set."""
    runs: Any = models.get_model("evaluation", "Run").objects
    draws: Any = models.get_model("labeling", "SampleDraw").objects
    days = draws.filter(chat_set__in=runs.filter(pk=run_id).values("chat_set")).order_by()
    found: date | None = days.values_list("day", flat=True).first()
    return found


def chat_places(
    chat_ids: Collection[int], *, sampled: date | None, models: Apps | Any = apps
) -> dict[int, Place]:
    """Return what each of these chats is counted by; one query.

    `sampled` : the day of their sample, for which all of them count: chats of a day are sampled when they
    arrive, and may have started before. Otherwise each counts for the day on which it started.
    """
    chats: Any = models.get_model("labeling", "Chat")
    rows = chats.objects.filter(pk__in=chat_ids).order_by()
    found = rows.values_list(
        *("pk", "started_at", "created_at", "topic_id", "experiment", "variant", f"metadata__{BOT_VERSION}"),
        KT(f"metadata__{BOT_VERSION}"),
    )
    return {
        pk: Place(
            sampled or _day(started_at or created_at), topic, _version(version, text), experiment, variant
        )
        for pk, started_at, created_at, topic, experiment, variant, version, text in found
    }


def _day(moment: datetime) -> date:
    return timezone.localdate(moment)


def _version(value: Any, text: Any) -> str:
    """The bot's version as it was sent; metadata may hold anything there.

    NB: SQLite returns the value of "2.10" as the number 2.1.
    """
    return str(text)[:80] if isinstance(value, str | int | float) else ""


def chats_answers(rows: Iterable[tuple[int, int, str, bool | None]]) -> Iterator[ChatAnswers]:
    """Yield each chat's verdicts; the rows (chat, criterion, state, value) come in the order of chats."""
    for chat, some in groupby(rows, key=itemgetter(0)):
        yield chat, [Answer(criterion, state == "read", value) for _, criterion, state, value in some]


def run_tally(run_id: int, *, models: Apps | Any = apps) -> Tally:
    """Count all verdicts of a run; memory does not grow with its chats."""
    tally, sampled = Tally(counted_criteria(run_id, models=models)), sampled_day(run_id, models=models)
    verdicts = models.get_model("evaluation", "Verdict").objects.filter(run=run_id).order_by("chat_id")
    rows = verdicts.values_list("chat_id", "criterion_id", "state", "value").iterator(chunk_size=5000)
    for batch in in_batches(chats_answers(rows), CHATS_AT_ONCE):
        places = chat_places([chat for chat, _ in batch], sampled=sampled, models=models)
        for chat, answers in batch:
            tally.add(places[chat], answers)
    return tally


def units_verdicts(run_id: int, unit_ids: Collection[int]) -> QuerySet[Verdict, Any]:
    """Return the verdicts on all chats of these units, in the order of chats.

    NB: the chats come from the units: looked up in the verdicts, the database would read all of the run's.
    """
    chats = Unit.objects.filter(pk__in=unit_ids).values("chat")
    return Verdict.objects.filter(run=run_id, chat__in=chats).order_by("chat_id")


def stored_tally(run_id: int) -> Tally:
    """Return the stored counts of a run; two queries."""
    tally, place = Tally({}), [f"{name}_id" if name == "topic" else name for name in PLACE[1:]]
    for row in DayCount.objects.filter(run=run_id).values_list(*place, "criterion_id", *COUNTS):
        tally.counts[Place(*row[:5]), row[5]] = list(row[6:])
    for row in DayScore.objects.filter(run=run_id).values_list(*place, "part", "tenth", *SCORES):
        tally.scores[Place(*row[:5]), row[5], row[6]] = list(row[7:])
    return tally


def is_exact(run_id: int) -> bool:
    """Return whether the stored counts of a run are those of its verdicts."""
    stored, computed = stored_tally(run_id), run_tally(run_id).without_zeros()
    return stored.counts == computed.counts and stored.scores == computed.scores


def counted_runs() -> QuerySet[Run]:
    """Return the runs whose verdicts are counted, oldest first."""
    return Run.objects.filter(~Q(purpose__in=NOT_COUNTED)).order_by("pk")
