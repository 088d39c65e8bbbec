"""Writes of the prompt editor: the draft, its worked examples, new versions."""

from collections.abc import Mapping, Sequence
from typing import Any

from alignment.prompts.queries.example_picker import chats_of_lines
from common.problems import FieldProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.core.costar import with_panes
from evaluation.prompts.core.example_lines import MOST_EXAMPLES
from evaluation.prompts.queries.drafts import draft_of, working_prompt
from evaluation.prompts.services.drafts import (
    SavedVersion,
    StaleDraft,
    draft_save,
    example_choices,
    version_save,
)
from evaluation.prompts.services.examples import LONGEST_PROMPT, ExampleChoice, PromptRefused, examples_check
from labeling.models.people import User
from labeling.models.rubric import Criterion

Line = dict[str, Any]


def draft_write(
    *,
    criterion: Criterion,
    author: User,
    base: PromptVersion,
    revision: int,
    text: str | None = None,
    panes: Mapping[str, str] | None = None,
    lines: Sequence[Line] | None = None,
    check: bool = True,
    origin: str | None = None,
) -> PromptDraft:
    """Store the author's draft: the whole text, its sections, or (without both) only the examples.

    An omitted part keeps its value in the draft, or in `base` if there is none. `check=False` accepts
    examples that were there before. Without `origin` the draft keeps its own. Raises StaleDraft, FieldProblem
    for an invalid text or section, PromptRefused for an invalid example.
    """
    stored = working_prompt(criterion=criterion, author=author, base=base)
    if panes is not None:
        length_check(sum(map(len, panes.values())))
        try:
            text = with_panes(stored.text, panes)
        except FieldProblem:
            if stored.revision == revision:
                raise
            # The stored text is newer than the page, so these sections may not fit into it.
            raise StaleDraft(draft_of(criterion=criterion, author=author)) from None
    if text is not None:
        length_check(len(text))
    if lines is not None and check:
        if len(lines) > MOST_EXAMPLES:
            raise PromptRefused("examples", f"are {len(lines)}; a prompt has at most {MOST_EXAMPLES}")
        examples_check(criterion=criterion, examples=example_choices_for(author, lines))
    return draft_save(
        criterion=criterion,
        author=author,
        base=base,
        text=stored.text if text is None else text,
        examples=stored.examples if lines is None else lines,
        revision=revision,
        origin=origin,
    )


def length_check(length: int) -> None:
    """Raise FieldProblem for a text longer than a prompt may be, before any work on it."""
    if length > LONGEST_PROMPT:
        raise FieldProblem("text", f"is longer than {LONGEST_PROMPT:,} characters ({length:,})")


def example_choices_for(user: User, lines: Sequence[Line]) -> tuple[ExampleChoice, ...]:
    """Return a draft's examples with their chats. Raises PromptRefused for a chat hidden from the user."""
    return example_choices(lines, chats=chats_of_lines(user=user, lines=lines))


def draft_publish(
    *, criterion: Criterion, author: User, base: PromptVersion, revision: int, reason: str, confirmed: int
) -> SavedVersion:
    """Save the stored draft as a version and delete it. Raises StaleDraft and what version_save raises."""
    stored = working_prompt(criterion=criterion, author=author, base=base)
    if stored.revision != revision:
        raise StaleDraft(None)
    return version_save(
        criterion=criterion,
        author=author,
        text=stored.text,
        examples=example_choices_for(author, stored.examples),
        reason=reason,
        base=stored.base,
        confirmed=confirmed,
    )
