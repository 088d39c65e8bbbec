"""Failing verdicts of a week and their rationales: what issues are found in."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, F, OuterRef, Q

from alignment.issues.core.clusters import FailingText
from alignment.issues.core.phrases import LONGEST_TEXT
from alignment.monitoring.queries.judged import Window, chats_of_days, window_of
from evaluation.models.day_counts import DayScore
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict
from evaluation.runs.queries.steps import final_rationales
from labeling.jobs.core import seeded_random
from labeling.models.rubric import CriterionVersion
from labeling.people.queries.visibility import holdout_chats

WEEKS_BACK = 8  # weeks that are looked after by themselves
MOST_TEXTS = 50_000
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Failing:
    """A verdict that fails."""

    verdict: int
    chat: int
    criterion: int
    topic: int
    topic_key: str


@dataclass(frozen=True, slots=True)
class WeekTexts:
    """A week's failing verdicts and their texts, in the same order; `total` counts also those not read."""

    failing: Sequence[Failing]
    texts: Sequence[FailingText]
    total: int


def monday(day: date) -> date:
    """Return the Monday of a day's week."""
    return day - timedelta(days=day.weekday())


def _window() -> Window | None:
    """The newest weeks of production. NB: nobody's window, because curated sets count for leads alone."""
    return window_of("week", WEEKS_BACK, user=AnonymousUser())


def weeks_judged() -> dict[date, list[int]]:
    """Return the finished runs that judged chats of each of the newest weeks; a few queries.

    These are the runs over samples of production that the monitoring pages count.
    """
    window = _window()
    if window is None:
        return {}
    rows = DayScore.objects.filter(window.counted, day__range=(window.first, window.last)).order_by()
    found: dict[date, set[int]] = defaultdict(set)
    for run, day in rows.values_list("run", "day").distinct():
        found[monday(day)].add(run)
    return {week: sorted(runs) for week, runs in sorted(found.items())}


def runs_of_week(week: date) -> list[int]:
    """Return the finished runs that judged chats of this week."""
    window = _window()
    if window is None:
        return []
    days = (week, week + timedelta(days=6))
    rows = DayScore.objects.filter(window.counted, day__range=days).order_by()
    return sorted(rows.values_list("run", flat=True).distinct())


def week_texts(week: date, *, seed: int = 0) -> WeekTexts:
    """Return the texts of a week, without holdout chats and chats whose text was deleted.

    Of more than 50,000 failing verdicts a random part is read.
    """
    failing = _failing(week)
    total = len(failing)
    if total > MOST_TEXTS:
        failing.sort(key=lambda one: seeded_random(seed, one.verdict))
        failing = failing[:MOST_TEXTS]
    failing.sort(key=lambda one: one.verdict)
    texts = [
        FailingText(one.topic_key, text, one.criterion)
        for one, text in zip(failing, rationales([one.verdict for one in failing]), strict=True)
    ]
    return WeekTexts(failing, texts, total)


def rationales(verdicts: Sequence[int]) -> Iterator[str]:
    """Yield the rationale of each verdict, a few hundred at a time."""
    ids = iter(verdicts)
    columns = ("unit_id", "flags", "rationale", "explanation")
    while part := list(islice(ids, AT_ONCE)):
        rows = Verdict.objects.only(*columns).in_bulk(part)
        final = final_rationales([row for row in rows.values() if not (row.explanation or row.rationale)])
        for pk in part:
            row = rows.get(pk)
            text = (row.explanation or row.rationale or final.get(pk, "")) if row else ""
            yield text[:LONGEST_TEXT]


def _failing(week: date) -> list[Failing]:
    """The newest verdict of each chat and criterion, where it fails."""
    runs = runs_of_week(week)
    if not runs:
        return []
    newer = Verdict.objects.filter(
        run__in=runs,
        run__gt=OuterRef("run"),
        chat=OuterRef("chat"),
        criterion=OuterRef("criterion"),
        state=Verdict.State.READ,
    )
    rows = Verdict.objects.filter(
        _fails(runs),
        chats_of_days(week, week + timedelta(days=6), "chat__"),
        state=Verdict.State.READ,
        chat__text_deleted_at=None,
    ).exclude(chat__in=holdout_chats())
    if len(runs) > 1:
        rows = rows.filter(~Exists(newer))
    columns = ("pk", "chat", "criterion", "chat__topic", "chat__topic__key")
    return [Failing(*row) for row in rows.order_by("pk").values_list(*columns)]


def _fails(runs: Sequence[int]) -> Q:
    """The verdicts of these runs that fail, as each judge was asked."""
    newest = {
        row.criterion_id: row.passes_when for row in CriterionVersion.objects.order_by("number").iterator()
    }
    by_judge: dict[int, list[int]] = defaultdict(list)
    for run, judge in Run.objects.filter(pk__in=runs).values_list("pk", "judge"):
        by_judge[judge].append(run)
    asked: dict[int, dict[int, bool]] = {judge: dict(newest) for judge in by_judge}
    prompts = JudgePrompt.objects.filter(judge__in=by_judge)
    passing = prompts.annotate(good=F("criterion_version__passes_when")).order_by()
    for judge, criterion, good in passing.values_list("judge", "criterion", "good"):
        asked[judge][criterion] = good
    fails = Q(pk=None)
    for judge, answers in asked.items():
        for good in (True, False):
            criteria = [pk for pk, passes_when in answers.items() if passes_when is good]
            fails |= Q(run__in=by_judge[judge], criterion__in=criteria, value=not good)
    return fails
