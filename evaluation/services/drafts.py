"""Keeps what an author has written and not yet saved as a version."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from evaluation.models.prompts import PromptDraft, PromptVersion
from labeling.core.problems import InputProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion


class StaleDraft(InputProblem):
    """A save made from an older state of the draft; `draft` is what is stored, None if it is gone."""

    def __init__(self, draft: PromptDraft | None) -> None:
        super().__init__("this draft was changed elsewhere since it was opened here")
        self.draft = draft


@transaction.atomic
def draft_save(
    *,
    criterion: Criterion,
    author: User,
    base: PromptVersion,
    text: str,
    examples: Sequence[dict[str, Any]],
    revision: int,
    origin: str = PromptVersion.Origin.AUTHOR,
) -> PromptDraft:
    """Store the draft over revision `revision` of it (0: there is none yet); raises its revision by one.

    Raises StaleDraft when another one is stored.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    draft = PromptDraft.objects.filter(criterion=criterion, author=author).first()
    if (draft.revision if draft else 0) != revision:
        raise StaleDraft(draft)
    if draft is None:
        draft = PromptDraft(criterion=criterion, author=author, revision=0)
    draft.base, draft.text, draft.examples, draft.origin = base, text, list(examples), origin
    draft.revision += 1
    draft.save()
    return draft


def draft_discard(*, criterion: Criterion, author: User) -> None:
    """Throw the author's draft away."""
    PromptDraft.objects.filter(criterion=criterion, author=author).delete()
