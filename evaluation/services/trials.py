"""An author's draft as a row that a judge can be made of, without becoming a version."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from evaluation.models.prompts import PromptVersion
from evaluation.selectors.drafts import WorkingPrompt
from evaluation.selectors.prompts import tried_version
from evaluation.services.examples import (
    ExampleChoice,
    PromptRefused,
    prompt_check,
    prompt_hash,
    version_store,
)
from evaluation.services.prompts import champions_ensure
from labeling.core.problems import shown
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion


@transaction.atomic
def trial_ensure(*, criterion: Criterion, prompt: WorkingPrompt, author: User) -> PromptVersion:
    """The prompt as a row: its base where nothing was changed, the version that says the same, or a trial.

    A trial has no number; the same text and examples are the same row. Raises PromptRefused as a version
    does.
    """
    if prompt.revision == 0:
        return prompt.base
    # The first version is the shipped or generated one, whatever is tried.
    champions_ensure(criteria=[criterion])
    Criterion.objects.select_for_update().get(pk=criterion.pk)
    examples = example_choices(prompt.examples)
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


def example_choices(lines: Sequence[Mapping[str, Any]]) -> tuple[ExampleChoice, ...]:
    """A draft's examples with their chats. Raises PromptRefused for one that cannot be taken.

    NB: a chat that is held out is answered like one that does not exist: authors must not learn of it.
    """
    held_out = ChatSetMember.objects.filter(chat=OuterRef("pk"), split=Split.HOLDOUT)
    chats = (
        Chat.objects.filter(~Exists(held_out))
        .select_related("topic")
        .in_bulk({str(line.get("chat", "")) for line in lines}, field_name="external_id")
    )
    return tuple(_choice(index, line, chats) for index, line in enumerate(lines))


def _choice(index: int, line: Mapping[str, Any], chats: Mapping[str, Chat]) -> ExampleChoice:
    chat = chats.get(str(line.get("chat", "")))
    if chat is None:
        raise PromptRefused("chat_id", f"there is no chat {shown(line.get('chat'))}", index=index)
    turns, value = line.get("turns"), line.get("value")
    if not isinstance(turns, list) or len(turns) != 2 or not all(type(turn) is int for turn in turns):
        raise PromptRefused("turns", "must be the first and the last turn", index=index)
    if value is not None and not isinstance(value, bool):
        raise PromptRefused("value", "must be true, false or null", index=index)
    return ExampleChoice(chat, turns[0], turns[1], value, str(line.get("rationale", "")))
