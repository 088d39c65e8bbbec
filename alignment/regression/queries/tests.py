"""Regression tests: evidence, and the result as JSON and text."""

from typing import Any

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import Evidence, GatePolicy, count_evidence
from alignment.regression.queries.paired_verdicts import paired_answers
from evaluation.models.runs import Run

RATES = (("TPR", "tpr"), ("TNR", "tnr"))


def gate_policy(row: Policy) -> GatePolicy:
    """Return the limits of a stored policy."""
    return GatePolicy.from_json(row.parameters)


def evidence_of(test: RegressionTest, *, candidate: Run) -> Evidence:
    """Compare the champion with one run of the candidate, the first or the confirming one."""
    return count_evidence(paired_answers(test, candidate=candidate).criteria)


def regression_answer(test: RegressionTest) -> dict[str, Any]:
    """Return the JSON result of a finished test."""
    return {
        **(test.body or {}),
        "gate": test.result,
        "reasons": test.reasons,
        "test": test.pk,
        "run": test.candidate_run_id,
        "baseline_run": test.baseline_run_id,
    }


def regression_title(test: RegressionTest) -> str:
    """Return candidate and chats in one line."""
    where = f"{test.chat_set.name}, {test.split or 'all splits'}"
    if test.candidate is None:
        return f"judge {test.candidate_run.judge.name} on {where}"
    return f"{test.candidate.criterion.key} version {test.candidate.number} on {where}"


def regression_text(test: RegressionTest) -> str:
    """Format the result for the terminal: answer, reasons, and one line per criterion."""
    body = test.body or {}
    lines = [f"{test.get_result_display().upper()}: {'; '.join(test.reasons)}"]
    lines += [_line(criterion) for criterion in body.get("criteria", ())]
    if body.get("more_labels"):
        lines.append(f"about {body['more_labels']:,} more labelled chats are needed")
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    rates = [f"{name} {_share(row['before'][key])} → {_share(row['after'][key])}" for name, key in RATES]
    counts = f"{row['fixed']} fixed, {row['broken']} broken of {row['n']}"
    return f"{row['key']}: {counts}; {', '.join(rates)}"


def _share(estimate: dict[str, Any]) -> str:
    return "–" if estimate["value"] is None else f"{estimate['value']:.2f}"
