"""Stores an author's draft as a row for a judge, without a new version."""

from collections.abc import Sequence

from django.db import transaction

from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.drafts import WorkingPrompt
from evaluation.prompts.queries.versions import tried_version
from evaluation.prompts.services.examples import ExampleChoice, prompt_check, prompt_hash, version_store
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.people import User
from labeling.models.rubric import Criterion


@transaction.atomic
def try_ensure(
    *, criterion: Criterion, prompt: WorkingPrompt, examples: Sequence[ExampleChoice], author: User
) -> PromptVersion:
    """Return the prompt as a row: its unchanged base, the version with the same content, or a try.

    `examples` are the prompt's with their chats. A try has no number; equal text and examples are the same
    row. Raises PromptRefused as prompt_version_add does.
    """
    if prompt.revision == 0:
        return prompt.base
    # A try must not become version 1, which is the shipped or generated champion.
    champions_ensure(criteria=[criterion])
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    prompt_check(criterion=criterion, text=prompt.text, examples=examples)
    digest = prompt_hash(text=prompt.text, examples=examples)
    saved = PromptVersion.objects.filter(criterion=criterion, content_hash=digest).first()
    known = saved or tried_version(criterion=criterion, content_hash=digest)
    return known or version_store(
        criterion=criterion,
        number=None,
        text=prompt.text,
        examples=examples,
        origin=prompt.origin,
        base=prompt.base,
        author=author,
    )
