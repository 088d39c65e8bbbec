"""Errors that bar prompts from tests and releases."""

from collections.abc import Iterable

from evaluation.models.prompts import PromptVersion
from evaluation.prompts.core.lint import Level
from evaluation.prompts.queries.criteria import text_findings


def prompt_problem(versions: Iterable[PromptVersion]) -> str:
    """Return the first version with errors in its text, and the errors; '' if there is none."""
    for version in versions:
        findings = text_findings(criterion=version.criterion, text=version.text)
        if errors := [one.text for one in findings if one.level is Level.ERROR]:
            return f"version {version.number} of {version.criterion.name} has errors: {'; '.join(errors)}"
    return ""
