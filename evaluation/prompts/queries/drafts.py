"""An author's working text: their draft of a criterion's prompt, else the champion."""

from dataclasses import dataclass
from typing import Any

from evaluation.models.prompts import PromptDraft, PromptVersion
from labeling.models.people import User
from labeling.models.rubric import Criterion


@dataclass(frozen=True, slots=True)
class WorkingPrompt:
    """A text with its examples (as in PromptDraft.examples); revision 0 until the first change."""

    base: PromptVersion
    text: str
    examples: list[dict[str, Any]]
    origin: str
    revision: int


def draft_of(*, criterion: Criterion, author: User) -> PromptDraft | None:
    """Return the author's draft, None without one."""
    return (
        PromptDraft.objects.filter(criterion=criterion, author=author)
        .select_related("base__written_for")
        .first()
    )


def working_prompt(*, criterion: Criterion, author: User, base: PromptVersion) -> WorkingPrompt:
    """Return the author's draft, else the text of `base`."""
    draft = draft_of(criterion=criterion, author=author)
    if draft is not None:
        return WorkingPrompt(draft.base, draft.text, draft.examples, draft.origin, draft.revision)
    return WorkingPrompt(base, base.text, examples_as_lines(base), PromptVersion.Origin.AUTHOR, 0)


def examples_as_lines(version: PromptVersion) -> list[dict[str, Any]]:
    """Return a version's examples in the form of a draft's."""
    rows = version.examples.select_related("chat").order_by("position")
    return [
        {
            "chat": row.chat.external_id,
            "turns": [row.first_turn, row.last_turn],
            "value": row.value,
            "rationale": row.rationale,
        }
        for row in rows
    ]
