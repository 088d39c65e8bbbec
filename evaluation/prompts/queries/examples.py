"""The worked examples of prompt versions, as the engines need them."""

from collections.abc import Collection

from evaluation.core.transcript_fencing import render_message
from evaluation.core.types import Example, Message
from evaluation.models.prompts import FewShotExample


def examples_of(prompt_ids: Collection[int]) -> dict[int, tuple[Example, ...]]:
    """Return examples by prompt version id, in order; versions without examples are missing. One query.

    Those whose chat has lost its text after its retention are left out.
    """
    rows = FewShotExample.objects.filter(prompt_version__in=prompt_ids, chat__text_deleted_at=None)
    rows = rows.select_related("chat")
    by_prompt: dict[int, tuple[Example, ...]] = {}
    for row in rows.order_by("prompt_version", "position"):
        by_prompt[row.prompt_version_id] = (*by_prompt.get(row.prompt_version_id, ()), example_as_sent(row))
    return by_prompt


def example_as_sent(row: FewShotExample) -> Example:
    """Return an example with the excerpt of its chat."""
    turns = [message for message in row.chat.messages if row.first_turn <= message["n"] <= row.last_turn]
    lines = [render_message(Message(turn["n"], turn["role"], turn["content"])) for turn in turns]
    return Example(row.chat.content_hash, "\n".join(lines), row.value, row.rationale)
