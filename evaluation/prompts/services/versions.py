"""Prompt versions of criteria: shipped, generated, and champions."""

from collections.abc import Collection
from pathlib import Path

from django.db import transaction

from common.problems import InputProblem
from evaluation.core.hashing import text_hash
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.prompts.core import sections
from evaluation.prompts.queries.versions import champions, newest_versions, next_number
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Tier

SHIPPED = Path(__file__).resolve().parent.parent / "shipped"

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
    """Return the champion prompt of each criterion by id; prompts without an author follow the rubric's text.

    A criterion without a version gets version 1, shipped or generated. When the criterion's text changes, a
    new version replaces a generated one, and a shipped one that asks another question. An author's version
    stays.
    """
    prompts, versions = champions(criteria=criteria), newest_versions(criteria=criteria)
    for criterion in criteria:
        champion, version = prompts.get(criterion.pk), versions[criterion.pk]
        if champion is None:
            prompts[criterion.pk] = _version_add(criterion, version, champion, reason="First version")
        elif not _serves(champion, criterion, version):
            reason = f"Version {version.number} of the criterion's text"
            prompts[criterion.pk] = _version_add(criterion, version, champion, reason=reason)
    return prompts


@transaction.atomic
def prompt_promote(
    *, version: PromptVersion, reason: str, by: User | None = None, overridden: bool = True
) -> Promotion:
    """Make a version the champion; `overridden` means that it passed no gate.

    The current champion keeps its promotion. Raises InputProblem without a reason.
    """
    if not reason.strip():
        raise InputProblem("a promotion needs a reason")
    criterion = Criterion.objects.select_for_update(no_key=True).get(pk=version.criterion_id)
    newest = Promotion.objects.filter(criterion=criterion).order_by("-id").first()
    if newest is not None and newest.version_id == version.pk:
        return newest
    return Promotion.objects.create(
        criterion=criterion, version=version, reason=reason, by=by, overridden=overridden
    )


def _serves(prompt: PromptVersion, criterion: Criterion, version: CriterionVersion) -> bool:
    if prompt.origin == PromptVersion.Origin.GENERATED:
        return prompt.text == generated_prompt(criterion, version)
    return prompt.origin != PromptVersion.Origin.SHIPPED or _asks(prompt.text, version.question)


@transaction.atomic
def _version_add(
    criterion: Criterion, version: CriterionVersion, before: PromptVersion | None, *, reason: str
) -> PromptVersion:
    """Add and promote the rubric's own text, unless the champion is no longer `before`."""
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    now = champions(criteria=[criterion]).get(criterion.pk)
    if now is not None and now != before:
        return now
    shipped = SHIPPED / f"{criterion.key}.md"
    text = shipped.read_text(encoding="utf-8") if shipped.is_file() else ""
    if text and _asks(text, version.question):
        origin = PromptVersion.Origin.SHIPPED
    else:
        origin, text = PromptVersion.Origin.GENERATED, generated_prompt(criterion, version)
    # NB: under the lock the next number is free, so no other user's version is promoted.
    prompt, _ = PromptVersion.objects.get_or_create(
        criterion=criterion,
        number=1 if before is None else next_number(criterion),
        defaults={
            "text": text,
            "content_hash": text_hash(text),
            "origin": origin,
            "reason": reason,
        },
    )
    Promotion.objects.create(criterion=criterion, version=prompt, reason=reason)
    return prompt


def generated_prompt(criterion: Criterion, version: CriterionVersion) -> str:
    """Return a CO-STAR prompt from the rubric's own words."""
    slot = KNOWLEDGE_SLOT if criterion.tier == Tier.CONTEXT else ""
    return GENERATED.format(slot=slot, question=version.question, definition=version.definition)


def _asks(text: str, question: str) -> bool:
    """Return whether a shipped prompt asks this question; it fits no other one."""
    return sections(text).get("objective", "").lstrip().startswith(question)
