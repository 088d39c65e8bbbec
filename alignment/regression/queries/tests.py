"""Regression tests: evidence, changed prompts, and the result as JSON and text."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.urls import reverse

from alignment.comparison.core.codes import in_clusters
from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import Evidence, GatePolicy, advice_of, count_evidence, no_verdict_words
from alignment.regression.queries.paired_verdicts import paired_answers
from common.search.registry import Hit, Query
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.people import User

RATES = (("TPR", "tpr"), ("TNR", "tnr"))

# Criterion id and hash of the prompt.
Content = tuple[int, str]


def gate_policy(row: Policy) -> GatePolicy:
    """Return the limits of a stored policy."""
    return GatePolicy.from_stored(row.parameters)


def evidence_of(test: RegressionTest, *, candidate: Run) -> Evidence:
    """Compare the champion with one run of the candidate, the first or the confirming one."""
    return count_evidence(paired_answers(test, candidate=candidate).criteria)


def changed_by_judges(tests: Collection[RegressionTest]) -> dict[int, list[PromptVersion]]:
    """Return, by test id, the candidate's prompt versions with a text that the baseline does not have.

    Of versions with the same text, the newest one saved before the test counts. Two queries; the texts are
    loaded on access.
    """
    prompts = _prompts({run.judge_id for test in tests for run in (test.baseline_run, test.candidate_run)})
    contents = {content for judge in prompts.values() for content in judge}
    versions = _versions(contents)
    return {
        test.pk: [
            _tested(test, versions[content])
            for content in prompts[test.candidate_run.judge_id]
            if content not in prompts[test.baseline_run.judge_id]
        ]
        for test in tests
    }


def _prompts(judges: Collection[int]) -> dict[int, list[Content]]:
    prompts: dict[int, list[Content]] = defaultdict(list)
    rows = JudgePrompt.objects.filter(judge__in=judges).order_by("judge", "criterion")
    for judge, criterion, content in rows.values_list(
        "judge_id", "criterion_id", "prompt_version__content_hash"
    ):
        prompts[judge].append((criterion, content))
    return prompts


def _versions(contents: Collection[Content]) -> dict[Content, list[PromptVersion]]:
    """Return the saved versions by content, oldest first."""
    versions: dict[Content, list[PromptVersion]] = defaultdict(list)
    rows = PromptVersion.objects.filter(content_hash__in={digest for _, digest in contents})
    for row in rows.select_related("criterion").defer("text").order_by("number"):
        versions[row.criterion_id, row.content_hash].append(row)
    return versions


def _tested(test: RegressionTest, same: Sequence[PromptVersion]) -> PromptVersion:
    before = [version for version in same if version.created_at <= test.created_at]
    return (before or same)[-1]


def regression_answer(test: RegressionTest) -> dict[str, Any]:
    """Return the JSON result of a finished test."""
    return {
        **(test.body or {}),
        "gate": test.result,
        "reasons": test.reasons,
        "policy_version": gate_policy(test.policy).label,
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
    lines += [f"caution: {caution}" for caution in body.get("cautions", ())]
    lines += [_line(criterion) for criterion in body.get("criteria", ())]
    if advice := advice_of(body):
        lines.append(advice)
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    rates = [f"{name} {_share(row['before'][key])} → {_share(row['after'][key])}" for name, key in RATES]
    n = in_clusters(str(row["n"]), row.get("clusters"))
    counts = f"{row['fixed']} fixed, {row['broken']} broken of {n}"
    before, after = no_verdict_words(row["before"]), no_verdict_words(row["after"])
    return f"{row['key']}: {counts}; no verdict {before} → {after}; {', '.join(rates)}"


def _share(estimate: dict[str, Any]) -> str:
    return "–" if estimate["value"] is None else f"{estimate['value']:.2f}"


def regression_hits(query: Query, user: User | AnonymousUser, limit: int) -> list[Hit]:
    """Return the regression tests that match by id, criterion, judge or set, newest first."""
    if not user.has_perm("labeling.see_judge"):
        return []
    texts = ("candidate__criterion__key", "candidate_run__judge__name", "chat_set__name")
    named = Q(pk=query.number) if query.number is not None else Q(pk__in=[])
    rows = RegressionTest.objects.filter(query.matches(*texts) | named).select_related(
        "candidate__criterion", "candidate_run__judge", "chat_set"
    )
    return [
        Hit(
            f"Regression test {row.pk}",
            reverse("alignment:regression_detail", args=[row.pk]),
            regression_title(row),
        )
        for row in rows.order_by("-pk")[:limit]
    ]
