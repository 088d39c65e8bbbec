"""Keeps the counts of verdicts by day, in the transaction that stores or deletes the verdicts.

All writers of a run's verdicts lock the row of the run first. Counts are by run: writers of other runs never
meet.
"""

from collections.abc import Collection
from datetime import date
from functools import cached_property
from typing import Any

from django.db import transaction

from evaluation.day_counts.core import CountedCriterion, Tally
from evaluation.day_counts.queries import (
    COUNTS,
    SCORES,
    chat_places,
    chats_answers,
    counted_criteria,
    is_counted,
    run_tally,
    sampled_day,
    units_verdicts,
)
from evaluation.gateway.rows import rows_increase
from evaluation.models.day_counts import PLACE, DayCount, DayScore
from evaluation.models.runs import Run


class DayCounter:
    """Counts the verdicts of a run while they are stored; it reads the run's criteria once."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id

    @cached_property
    def _criteria(self) -> dict[int, CountedCriterion] | None:
        return counted_criteria(self._run_id) if is_counted(self._run_id) else None

    @cached_property
    def _sampled(self) -> date | None:
        return sampled_day(self._run_id)

    def add(self, unit_ids: Collection[int]) -> None:
        """Count the verdicts that these units have stored; the caller has locked the run's row.

        A chat's score also depends on its earlier units: their part is taken away and added with the new.
        """
        if self._criteria is None or not unit_ids:
            return
        own, rows = set(unit_ids), units_verdicts(self._run_id, unit_ids)
        found = list(rows.values_list("chat_id", "criterion_id", "state", "value", "unit_id"))
        tally = Tally(self._criteria)
        places = chat_places({row[0] for row in found}, sampled=self._sampled)
        for chat, answers in chats_answers(row[:4] for row in found):
            tally.add(places[chat], answers)
        for chat, answers in chats_answers(row[:4] for row in found if row[4] not in own):
            tally.add(places[chat], answers, sign=-1)
        tally_store(self._run_id, tally.without_zeros())


def tally_store(run_id: int, tally: Tally) -> None:
    """Add these numbers to the stored ones of a run; rows that no chat is left in are deleted."""
    counts = [(run_id, *place, criterion, *numbers) for (place, criterion), numbers in tally.counts.items()]
    scores = [
        (run_id, *place, part, tenth, *numbers) for (place, part, tenth), numbers in tally.scores.items()
    ]
    rows_increase(DayCount, (*PLACE, "criterion"), COUNTS, counts)
    rows_increase(DayScore, (*PLACE, "part", "tenth"), SCORES, scores)
    if any(numbers[0] < 0 for numbers in tally.scores.values()):
        DayScore.objects.filter(run=run_id, chats=0).delete()


def days_recount(run_id: int) -> None:
    """Replace the stored counts of a run by those of its verdicts."""
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run_id)
        for model in (DayCount, DayScore):
            rows: Any = model._default_manager.filter(run=run_id)
            rows.delete()
        if is_counted(run_id):
            tally_store(run_id, run_tally(run_id))
