"""Verdicts of a regression test's runs with the consensus, by chat."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.comparison.core.codes import Clusters, Codes, CriterionData
from alignment.comparison.queries.answers import judge_answers, report_data
from alignment.comparison.queries.scope import Scope
from alignment.models.regressions import RegressionTest
from alignment.regression.core import PairedVerdicts
from alignment.reports.core.label_problems import label_problem
from alignment.reports.queries.reports import POLICY, SEED
from alignment.statistics.agreement import leave_one_rater_out
from evaluation.models.runs import Run


@dataclass(frozen=True, slots=True)
class PairedAnswers:
    """External chat ids in the order of the runs, and the criteria of both judges with arrays by chat.

    clusters : number of each chat's cluster; None if every chat is alone.
    """

    chat_ids: Sequence[str]
    criteria: tuple[PairedVerdicts, ...]
    clusters: Clusters


def paired_answers(test: RegressionTest, *, candidate: Run, only: str = "") -> PairedAnswers:
    """Read the answers of champion, candidate and raters; `only` limits them to one criterion key.

    The number of queries is fixed; the verdicts of each run are read once.
    """
    data = report_data(Scope(test.chat_set, test.baseline_run, only=only))
    verdicts = judge_codes(candidate, only=only)
    revised = test.candidate.criterion.key if test.candidate else ""
    pairs = (
        _paired(row, verdicts.get(row.spec.key), data.clusters, revised=revised in ("", row.spec.key))
        for row in data.criteria
    )
    return PairedAnswers(data.chat_ids, tuple(pair for pair in pairs if pair is not None), data.clusters)


def judge_codes(run: Run, *, only: str = "") -> dict[str, Codes]:
    """Return judge codes by criterion key, chats in the order of the run."""
    return judge_answers(Scope(run.chat_set, run, only=only))


def _paired(
    human: CriterionData, candidate: Codes | None, clusters: Clusters, *, revised: bool
) -> PairedVerdicts | None:
    """Return None unless both judges have the criterion: a baseline may have one retired since."""
    if human.judge is None or candidate is None:
        return None
    return PairedVerdicts(
        key=human.spec.key,
        tier=human.spec.tier,
        human=human.human,
        champion=human.judge,
        candidate=candidate,
        ceiling=leave_one_rater_out(human.counts).balanced_accuracy,
        revised=revised,
        problem=label_problem(human, policy=POLICY, seed=SEED, clusters=clusters),
        clusters=clusters,
    )
