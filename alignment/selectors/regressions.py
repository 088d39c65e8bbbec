"""Regression tests: the verdicts of champion and candidate beside the human answers."""

from typing import Any

from django.db.models import Count, QuerySet

from alignment.core.regression import Evidence, GatePolicy, weigh
from alignment.models.regressions import HoldoutOpening, Policy, RegressionTest
from alignment.selectors.paired import paired_answers
from evaluation.models.runs import Run

RATES = (("TPR", "tpr"), ("TNR", "tnr"))
SHOWN = (
    ("Balanced accuracy", "balanced_accuracy"),
    ("TPR, people said True", "tpr"),
    ("TNR, people said False", "tnr"),
)


def gate_policy(row: Policy) -> GatePolicy:
    """The limits of a stored policy."""
    return GatePolicy.from_json(row.parameters)


def evidence_of(test: RegressionTest, *, candidate: Run) -> Evidence:
    """Champion against one run of the candidate (the first, or the confirming one), on the human answers."""
    return weigh(paired_answers(test, candidate=candidate).criteria)


def regression_rows() -> QuerySet[RegressionTest]:
    """Every test with what its row and page name, newest first."""
    return RegressionTest.objects.select_related(
        "policy",
        "chat_set",
        "candidate__criterion",
        "baseline_run__judge",
        "candidate_run__judge",
        "created_by",
    )


def regression_page(test: RegressionTest) -> dict[str, Any]:
    """The template context: the test, its criteria as they were counted, its runs with their state."""
    body = test.body or {}
    runs = {
        "Champion": test.baseline_run,
        "Candidate": test.candidate_run,
        "Candidate again": test.confirm_run,
        "Champion again": test.noise_run,
    }
    return {
        "test": test,
        "title": regression_title(test),
        "criteria": [_shown(found) for found in body.get("criteria", ())],
        "pooled": body.get("pooled") if len(body.get("criteria", ())) > 1 else None,
        "more_labels": body.get("more_labels"),
        "runs": [{"what": what, "run": run} for what, run in runs.items() if run is not None],
        "openings": _openings(test),
    }


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """A criterion's counts with its rates as rows of a table."""
    rates = [
        {"name": name, "before": found["before"][key], "after": found["after"][key]} for name, key in SHOWN
    ]
    return {**found, "name": found["key"].replace("_", " ").capitalize(), "rates": rates}


def _openings(test: RegressionTest) -> int:
    """How often this set's holdout was opened for the criteria tested, up to now; 0 where it was not."""
    opened = test.openings.values("criterion")
    counts = HoldoutOpening.objects.filter(chat_set=test.chat_set, criterion__in=opened).values("criterion")
    return max((row["n"] for row in counts.annotate(n=Count("pk")).order_by()), default=0)


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
    where = f"{test.chat_set.name}, {test.split or 'every split'}"
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
