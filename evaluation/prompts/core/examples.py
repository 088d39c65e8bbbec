"""The worked examples of a criterion: excerpts of train chats with the raters' answers."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from evaluation.core.transcript_fencing import text_block, visible_text
from evaluation.core.types import Chat, Criterion, Example, Size
from evaluation.prompts.core.texts import texts

ANSWERS = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}


def without_own_example(criteria: Sequence[Criterion], *, chat: Chat) -> tuple[Criterion, ...]:
    """Return the criteria without examples from this very chat, which would reveal its answer."""
    return tuple(
        replace(one, examples=others) if (others := _others(one.examples, chat=chat)) != one.examples else one
        for one in criteria
    )


def _others(examples: Sequence[Example], *, chat: Chat) -> tuple[Example, ...]:
    return tuple(example for example in examples if example.content_hash != chat.content_hash)


def worked_examples(criterion: Criterion, *, size: Size, order_seed: int, fence_secret: bytes) -> str:
    """Return the examples as one text, in an order that the judge's seed determines; "" without examples.

    Each excerpt has a fence of its own, followed by the raters' rationale and a verdict line.
    """
    ordered = sorted(criterion.examples, key=lambda e: _place(e, criterion=criterion, order_seed=order_seed))
    if not ordered:
        return ""
    blocks = (example_block(example, key=criterion.key, fence_secret=fence_secret) for example in ordered)
    return "\n\n".join((texts(size)["examples"], *blocks))


def _place(example: Example, *, criterion: Criterion, order_seed: int) -> bytes:
    return hashlib.sha256(f"{order_seed}:{criterion.key}:{example.content_hash}".encode()).digest()


def example_block(example: Example, *, key: str, fence_secret: bytes) -> str:
    """Return one example as a prompt shows it: the fenced excerpt, the reason and the answer."""
    excerpt = text_block(kind="example", text=example.excerpt, secret=fence_secret)
    return f"{excerpt}\n{visible_text(example.rationale).strip()}\n{key}: {ANSWERS[example.value]}"
