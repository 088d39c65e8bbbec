"""What people and the judges of a league answered on the chats that may be shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import QuerySet

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode, ReportData
from alignment.comparison.queries.answers import Chats, covered_chats, report_data, run_codes
from alignment.comparison.queries.cached_documents import hash_of, kept, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.models.chats import Chat

BODY_VERSION = 4


@dataclass(frozen=True)
class ShownScope(Scope):
    """A set's chats, of them only those that may be `shown` to who looks; None = all.

    NB: figures over the others would tell of single chats: runs can be chosen anew, and the figures of two
    choices differ by the chats that one run more has not answered.
    """

    shown: QuerySet[Chat] | None = None

    @property
    def members(self) -> QuerySet[Any]:
        """The rows that say which chats are covered, in the set's order."""
        rows = super().members
        return rows if self.shown is None else rows.filter(chat__in=self.shown.values("pk"))


@dataclass(frozen=True)
class LeagueAnswers:
    """Answers on a scope's chats, read when they are first asked for, and once."""

    scope: ShownScope
    _codes: dict[int, dict[int, Codes]] = field(default_factory=dict, init=False)

    @cached_property
    def people(self) -> ReportData:
        """What people answered; no judge."""
        return report_data(self.scope)

    @cached_property
    def chats(self) -> Chats:
        """The covered chats, in the order of all answers."""
        return covered_chats(self.scope)

    def codes(self, run: Run) -> dict[int, Codes]:
        """JudgeCode by chat, by criterion id; one query a run."""
        if run.pk not in self._codes:
            self._codes[run.pk] = run_codes(run, self.scope, self.chats)
        return self._codes[run.pk]

    @cached_property
    def _state(self) -> str:
        return pin_of(self.scope, Report.Kind.LEAGUE.value, BODY_VERSION)

    def pin(self, about: str, runs: Sequence[Run]) -> str:
        """A hash of these answers and runs, and of what a document says `about` them."""
        return hash_of([self._state, about, [[run.pk, run.finished_at] for run in runs]])


def answered(answers: LeagueAnswers, runs: Sequence[Run]) -> dict[int, int]:
    """By run, how many of people's answers it answered True or False, too; computed once and kept."""
    stored = kept(
        answers.scope,
        kind=Report.Kind.LEAGUE,
        pin=answers.pin("answered", runs),
        body=lambda: {"answered": [[run.pk, _answered(answers, run)] for run in runs]},
        options=["answered", answers.scope.shown is None],
    )
    return dict(stored.body["answered"])


def _answered(answers: LeagueAnswers, run: Run) -> int:
    codes = answers.codes(run)
    return sum(
        int(np.count_nonzero((one.human <= HumanCode.FALSE) & (codes[row.pk] <= JudgeCode.FALSE)))
        for row, one in zip(answers.scope.criteria, answers.people.criteria, strict=True)
    )
