"""Everything that is to say of a prompt before it is saved: its text, its worked examples."""

from collections.abc import Sequence

from evaluation.core.examples import advice
from evaluation.core.prompts.lint import Finding, Level
from evaluation.selectors.criteria import leak_findings, prompt_findings
from evaluation.services.examples import ExampleChoice, PromptRefused, examples_check
from labeling.models.rubric import Criterion

EXAMPLES = "examples"


def prompt_lint(
    *, criterion: Criterion, text: str, examples: Sequence[ExampleChoice] = ()
) -> tuple[Finding, ...]:
    """The findings, errors first: an error keeps the editor from saving, a warning does not."""
    found = (*prompt_findings(criterion=criterion, text=text), *_of_examples(criterion, examples))
    return tuple(sorted(found, key=lambda finding: finding.level != Level.ERROR))


def _of_examples(criterion: Criterion, examples: Sequence[ExampleChoice]) -> tuple[Finding, ...]:
    if not examples:
        return ()
    try:
        examples_check(criterion=criterion, examples=examples)
        refused = []
    except PromptRefused as problem:
        refused = [Finding(Level.ERROR, EXAMPLES, str(problem).removeprefix("examples: "))]
    topics = [example.chat.topic.key for example in examples]
    notes = advice([example.value for example in examples], topics=topics)
    advised = [Finding(Level.WARNING, EXAMPLES, note.removeprefix("examples: ")) for note in notes]
    return (*refused, *advised, *leak_findings({EXAMPLES: "\n".join(one.rationale for one in examples)}))
