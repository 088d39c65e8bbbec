"""Prompts changed by tests of whole judges."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from alignment.models.regressions import RegressionTest
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion

# Criterion id and hash of the prompt.
Content = tuple[int, str]


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
