"""Prompt versions of criteria: the shipped ones, generated ones, champions."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from evaluation.core.prompts import sections
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.selectors.prompts import champions
from labeling.models.rubric import Criterion, CriterionVersion, Tier

SHIPPED = Path(__file__).resolve().parent.parent / "prompts"

GENERATED = """# Context
The chats are between a support chatbot and its customers.{slot}

# Objective
{question}

{definition}

# Style
Look at the whole chat. What the messages say decides; what the definition does not name does not count.

# Tone
Impartial towards bot and customer, neither lenient nor harsh.

# Audience
A reviewer who checks the verdict against the chat: name message numbers.

# Response
A rationale of at most 120 words that starts from the evidence.
"""
KNOWLEDGE_SLOT = " What is known about the business:\n\n{{knowledge}}"


def champions_ensure(*, criteria: Collection[Criterion]) -> dict[int, PromptVersion]:
    """The champion prompt of each criterion (by id); one without any gets version 1, shipped or generated."""
    found = champions(criteria=criteria)
    for criterion in criteria:
        if criterion.pk not in found:
            found[criterion.pk] = _first_version(criterion)
    return found


def _first_version(criterion: Criterion) -> PromptVersion:
    version = criterion.versions.latest("number")
    shipped = SHIPPED / f"{criterion.key}.md"
    text = shipped.read_text(encoding="utf-8") if shipped.is_file() else ""
    if text and _asks(text, version.question):
        origin = PromptVersion.Origin.SHIPPED
    else:
        origin, text = PromptVersion.Origin.GENERATED, generated_prompt(criterion, version)
    prompt, _ = PromptVersion.objects.get_or_create(
        criterion=criterion,
        number=1,
        defaults={
            "text": text,
            "content_hash": hashlib.sha256(text.encode()).hexdigest(),
            "origin": origin,
            "reason": "First version",
        },
    )
    Promotion.objects.create(criterion=criterion, version=prompt, reason="First version")
    return prompt


def generated_prompt(criterion: Criterion, version: CriterionVersion) -> str:
    """A CO-STAR prompt from nothing but the rubric's own words."""
    slot = KNOWLEDGE_SLOT if criterion.tier == Tier.CONTEXT else ""
    return GENERATED.format(slot=slot, question=version.question, definition=version.definition)


def _asks(text: str, question: str) -> bool:
    """A shipped prompt serves only the question it was written for."""
    return sections(text).get("objective", "").lstrip().startswith(question)
