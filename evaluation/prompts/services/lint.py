"""All checks of a prompt before it is saved: its text and its worked examples."""

from collections.abc import Iterator, Sequence

from common.problems import FieldProblem
from evaluation.prompts.core.example_lines import advice, check_mixture
from evaluation.prompts.core.lint import Finding, Level
from evaluation.prompts.queries.criteria import leak_findings, prompt_findings, text_findings
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused, examples_check
from labeling.models.rubric import Criterion

EXAMPLES = "examples"


def prompt_lint(
    *, criterion: Criterion, text: str, examples: Sequence[ExampleChoice] = ()
) -> tuple[Finding, ...]:
    """Return the findings, errors first: an error prevents saving, a warning does not."""
    findings = list(prompt_findings(criterion=criterion, text=text))
    if examples:
        findings += _example_findings(criterion, examples)
        findings += leak_findings({EXAMPLES: "\n".join(example.rationale for example in examples)})
    return tuple(sorted(findings, key=lambda finding: finding.level != Level.ERROR))


def prompt_errors(
    *, criterion: Criterion, text: str, examples: Sequence[ExampleChoice]
) -> tuple[Finding, ...]:
    """Return what prevents saving a prompt; leaked passages only warn, so no chat is read."""
    findings = [*text_findings(criterion=criterion, text=text), *_example_findings(criterion, examples)]
    return tuple(finding for finding in findings if finding.level == Level.ERROR)


def _example_findings(criterion: Criterion, examples: Sequence[ExampleChoice]) -> Iterator[Finding]:
    values = [example.value for example in examples]
    try:
        examples_check(criterion=criterion, examples=examples)
        check_mixture(values)
    except (PromptRefused, FieldProblem) as problem:
        yield Finding(Level.ERROR, EXAMPLES, str(problem).removeprefix("examples: "))
    for note in advice(values, topics=[example.chat.topic.key for example in examples]):
        yield Finding(Level.WARNING, EXAMPLES, note.removeprefix("examples: "))
