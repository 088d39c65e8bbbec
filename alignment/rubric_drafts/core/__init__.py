"""The request for a drafted definition, and reading its answer; equal material gives equal bytes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluation.core.transcript_fencing import text_block
from evaluation.core.types import PromptMessage

MOST_OTHERS = 40  # other criteria in a request
LONGEST_OTHER = 1_500  # characters of one definition
LONGEST_DEFINITION = 10_000
_MARKER = re.compile(r"^[ \t>*_#`]*definition[ \t*_:`.]*$", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"^(?:`{3,}|~{3,})[\w-]*[ \t]*\n|\n?(?:`{3,}|~{3,})[ \t]*$")
NOT_APPLICABLE = {
    True: "says when the question does not apply to a chat, and that it applies otherwise;",
    False: "says which answer holds where the chat gives no occasion for it: there is no third answer;",
}
TIERS = {
    "simple": "uses standards that hold for every business, and none that need special knowledge;",
    "context": "says how to answer where the knowledge articles of the business do not cover the case;",
    "subjective": "names the signs in the text that count, for readers will weigh them differently;",
}


class Unreadable(ValueError):
    """The answer holds no definition; the message says why."""


@dataclass(frozen=True, slots=True)
class OtherCriterion:
    """Another criterion of the rubric."""

    key: str
    question: str
    definition: str


@dataclass(frozen=True, slots=True)
class Material:
    """What a draft is made from: the question, where it belongs, and the rubric's other criteria."""

    question: str
    dimension: str
    tier: str
    allow_na: bool
    others: tuple[OtherCriterion, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftedDefinition:
    """A definition, and the model's remarks on the question."""

    text: str
    remarks: str


def draft_messages(material: Material, *, fence_secret: bytes) -> tuple[PromptMessage, PromptMessage]:
    """Return system and user message. Each text from outside has its own fence."""
    asked = f"{material.question.strip()}\n\nDimension: {material.dimension}. Tier: {material.tier}."
    user = (
        "# The question of the new definition",
        text_block(kind="question", text=asked, secret=fence_secret),
        *_others(material.others, secret=fence_secret),
        _text("duty").format(not_applicable=NOT_APPLICABLE[material.allow_na], tier=TIERS[material.tier]),
    )
    return PromptMessage("system", (_text("system"),)), PromptMessage("user", user)


def _others(others: Sequence[OtherCriterion], *, secret: bytes) -> Iterable[str]:
    if others:
        yield "# The other criteria of the rubric"
    for one in others[:MOST_OTHERS]:
        text = f"{one.key}: {one.question}\n{one.definition[:LONGEST_OTHER]}"
        yield text_block(kind="criterion", text=text, secret=secret)


def read_draft(answer: str) -> DraftedDefinition:
    """Return the definition in an answer: what follows its last line DEFINITION.

    Raises Unreadable if that line is missing, nothing follows it, or the text is too long.

    >>> read_draft("Two readings.\\n\\nDEFINITION\\nTrue when it greets.")
    DraftedDefinition(text='True when it greets.', remarks='Two readings.')
    >>> try:
    ...     read_draft("True when it greets.")
    ... except Unreadable as error:
    ...     print(error)
    the answer has no line DEFINITION
    """
    lines = answer.replace("\r\n", "\n").replace("\r", "\n").strip()
    markers = list(_MARKER.finditer(lines))
    if not markers:
        raise Unreadable("the answer has no line DEFINITION")
    text = _FENCE.sub("", lines[markers[-1].end() :].strip()).strip()
    if not text:
        raise Unreadable("nothing follows the line DEFINITION")
    if len(text) > LONGEST_DEFINITION:
        raise Unreadable(f"the definition is longer than {LONGEST_DEFINITION:,} characters ({len(text):,})")
    return DraftedDefinition(text, lines[: markers[-1].start()].strip())


def room_for_definition(*, reasons: bool) -> int:
    """Return the token limit of the answer: remarks, definition, and tokens for reasoning.

    >>> room_for_definition(reasons=False)
    1000
    """
    return 1_000 + (12_000 if reasons else 0)


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()
