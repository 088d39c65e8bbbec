"""Regression tests: the verdicts of champion and candidate beside the human answers."""

from typing import Any

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import Evidence, GatePolicy, weigh
from alignment.regression.queries.paired_verdicts import paired_answers
from evaluation.models.runs import Run

RATES = (("TPR", "tpr"), ("TNR", "tnr"))


def gate_policy(row: Policy) -> GatePolicy:
    """The limits of a stored policy."""
    return GatePolicy.from_json(row.parameters)


def evidence_of(test: RegressionTest, *, candidate: Run) -> Evidence:
    """Champion against one run of the candidate (the first, or the confirming one), on the human answers."""
    return weigh(paired_answers(test, candidate=candidate).criteria)


def regression_answer(test: RegressionTest) -> dict[str, Any]:
    """What programs are told of a finished test (docs/commands.md)."""
    return {
        **(test.body or {}),
        "gate": test.result,
        "reasons": test.reasons,
        "test": test.pk,
        "run": test.candidate_run_id,
        "baseline_run": test.baseline_run_id,
    }


def regression_title(test: RegressionTest) -> str:
    """What was tested, in a line."""
    where = f"{test.chat_set.name}, {test.split or 'all splits'}"
    if test.candidate is None:
        return f"judge {test.candidate_run.judge.name} on {where}"
    return f"{test.candidate.criterion.key} version {test.candidate.number} on {where}"


def regression_text(test: RegressionTest) -> str:
    """The same for the terminal: the answer, why, and a line a criterion."""
    body = test.body or {}
    lines = [f"{test.get_result_display().upper()}: {'; '.join(test.reasons)}"]
    lines += [_line(criterion) for criterion in body.get("criteria", ())]
    if body.get("more_labels"):
        lines.append(f"about {body['more_labels']:,} more labelled chats would decide")
    return "\n".join(lines)


def _line(found: dict[str, Any]) -> str:
    rates = [f"{name} {_share(found['before'][key])} → {_share(found['after'][key])}" for name, key in RATES]
    counts = f"{found['fixed']} fixed, {found['broken']} broken of {found['n']}"
    return f"{found['key']}: {counts}; {', '.join(rates)}"


def _share(estimate: dict[str, Any]) -> str:
    return "–" if estimate["value"] is None else f"{estimate['value']:.2f}"
