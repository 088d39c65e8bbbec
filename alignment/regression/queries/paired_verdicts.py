"""The verdicts of a regression test's runs beside the human answers, chat by chat."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.comparison.core.codes import Codes, CriterionData
from alignment.comparison.queries.answers import judge_answers, report_data
from alignment.comparison.queries.scope import Scope
from alignment.models.regressions import RegressionTest
from alignment.regression.core import PairedVerdicts
from alignment.statistics.agreement import leave_one_rater_out
from evaluation.models.runs import Run


@dataclass(frozen=True, slots=True)
class PairedAnswers:
    """External ids in the runs' order, and the criteria that both judges were asked, arrays as long."""

    chat_ids: Sequence[str]
    criteria: tuple[PairedVerdicts, ...]


def paired_answers(test: RegressionTest, *, candidate: Run, only: str = "") -> PairedAnswers:
    """Champion and one run of the candidate beside people; `only` narrows it to one criterion key.

    The number of queries depends on neither chats nor criteria; the verdicts of each run are read once.
    """
    data = report_data(Scope(test.chat_set, test.baseline_run, only=only))
    verdicts = judge_codes(candidate, only=only)
    pairs = (_paired(row, verdicts.get(row.spec.key)) for row in data.criteria)
    return PairedAnswers(data.chat_ids, tuple(pair for pair in pairs if pair is not None))


def judge_codes(run: Run, *, only: str = "") -> dict[str, Codes]:
    """The judge's codes by criterion key, chats in the run's order."""
    return judge_answers(Scope(run.chat_set, run, only=only))


def _paired(people: CriterionData, candidate: Codes | None) -> PairedVerdicts | None:
    """None for a criterion that only one of the two was asked: a baseline may know one retired since."""
    if people.judge is None or candidate is None:
        return None
    return PairedVerdicts(
        key=people.spec.key,
        tier=people.spec.tier,
        human=people.human,
        champion=people.judge,
        candidate=candidate,
        ceiling=leave_one_rater_out(people.counts).balanced_accuracy,
    )
