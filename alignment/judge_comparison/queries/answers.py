"""Human labels and verdicts of a league on the chats that the user can see."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import QuerySet

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode, ReportData
from alignment.comparison.queries.answers import Chats, covered_chats, report_data, run_codes
from alignment.comparison.queries.cached_documents import cached_document, hash_of, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.models.chats import Chat

BODY_VERSION = 6


@dataclass(frozen=True)
class VisibleScope(Scope):
    """The chats of a set, limited to those `visible` to the user; None means all.

    NB: counting hidden chats would disclose single ones: a user could compare the results of two selections
    of runs that differ by a few chats.
    """

    visible: QuerySet[Chat] | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the chats can never change: what a user can see may change."""
        return self.visible is None and super().is_fixed

    @property
    def is_whole_run(self) -> bool:
        """Whether all chats of the run are included."""
        return self.visible is None and super().is_whole_run

    @property
    def members(self) -> QuerySet[Any]:
        """The members of the scope, in the set's order."""
        rows = super().members
        return rows if self.visible is None else rows.filter(chat__in=self.visible.values("pk"))


@dataclass(frozen=True)
class LeagueAnswers:
    """Answers on the chats of a scope, read on first use and cached."""

    scope: VisibleScope
    _codes: dict[int, dict[int, Codes]] = field(default_factory=dict, init=False)

    @cached_property
    def human(self) -> ReportData:
        """The labels, without a judge."""
        return report_data(self.scope)

    @cached_property
    def chats(self) -> Chats:
        """The compared chats, in the order of all answers."""
        return covered_chats(self.scope)

    def codes(self, run: Run) -> dict[int, Codes]:
        """Return JudgeCode by chat, by criterion id; one query a run."""
        if run.pk not in self._codes:
            self._codes[run.pk] = run_codes(run, self.scope, self.chats)
        return self._codes[run.pk]

    @cached_property
    def _state(self) -> str:
        return pin_of(self.scope, Report.Kind.LEAGUE.value, BODY_VERSION)

    def pin(self, about: str, runs: Sequence[Run]) -> str:
        """Return a hash of these answers, these runs and the kind of document."""
        return hash_of([self._state, about, [[run.pk, run.finished_at] for run in runs]])


def answered(answers: LeagueAnswers, runs: Sequence[Run]) -> dict[int, int]:
    """Count, by run, the human answers on which it has True or False too; cached."""
    stored = cached_document(
        answers.scope,
        kind=Report.Kind.LEAGUE,
        pin=answers.pin("answered", runs),
        body=lambda: {"answered": [[run.pk, _answered(answers, run)] for run in runs]},
        options=["answered", answers.scope.visible is None],
    )
    return dict(stored.body["answered"])


def _answered(answers: LeagueAnswers, run: Run) -> int:
    codes = answers.codes(run)
    return sum(
        int(np.count_nonzero((one.human <= HumanCode.FALSE) & (codes[row.pk] <= JudgeCode.FALSE)))
        for row, one in zip(answers.scope.criteria, answers.human.criteria, strict=True)
    )
