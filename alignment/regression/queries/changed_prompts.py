"""The prompts that tests of whole judges change."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from alignment.models.regressions import RegressionTest
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion

# A criterion's id, and the hash of what it is asked with.
Content = tuple[int, str]


def changed_by_judges(tests: Collection[RegressionTest]) -> dict[int, list[PromptVersion]]:
    """By test id, the candidate's prompt versions that say what its baseline does not ask; two queries.

    Versions that say the same are one judge, which names the first of them that was asked. The newest one
    saved before the test is the one that was tested. Their texts are fetched where they are read.
    """
    asked = _asked({run.judge_id for test in tests for run in (test.baseline_run, test.candidate_run)})
    contents = {content for found in asked.values() for content in found}
    versions = _versions(contents)
    return {
        test.pk: [
            _tested(test, versions[content])
            for content in asked[test.candidate_run.judge_id]
            if content not in asked[test.baseline_run.judge_id]
        ]
        for test in tests
    }


def _asked(judges: Collection[int]) -> dict[int, list[Content]]:
    found: dict[int, list[Content]] = defaultdict(list)
    rows = JudgePrompt.objects.filter(judge__in=judges).order_by("judge", "criterion")
    for judge, criterion, content in rows.values_list(
        "judge_id", "criterion_id", "prompt_version__content_hash"
    ):
        found[judge].append((criterion, content))
    return found


def _versions(contents: Collection[Content]) -> dict[Content, list[PromptVersion]]:
    """The saved versions of each content, oldest first."""
    found: dict[Content, list[PromptVersion]] = defaultdict(list)
    rows = PromptVersion.objects.filter(content_hash__in={digest for _, digest in contents})
    for row in rows.select_related("criterion").defer("text").order_by("number"):
        found[row.criterion_id, row.content_hash].append(row)
    return found


def _tested(test: RegressionTest, same: Sequence[PromptVersion]) -> PromptVersion:
    before = [version for version in same if version.created_at <= test.created_at]
    return (before or same)[-1]
