"""Prompt versions of criteria: the shipped ones, generated ones, champions."""

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
    """The champion prompt of each criterion (by id); one that nobody wrote follows the rubric's text.

    A criterion without any gets version 1, shipped or generated. When the criterion's text has changed, a
    generated version, or one shipped for another question, is followed by a new one; an author's stays.
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
    """Make a version the champion; `overridden` says that no gate has passed it.

    One that is the champion already keeps its promotion. Raises InputProblem without a reason.
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
    """Add and promote the rubric's own text, unless the champion is another than `before` by now."""
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
    # NB: under the lock the next number is free: a version that somebody saved meanwhile is not promoted.
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
    """A CO-STAR prompt from nothing but the rubric's own words."""
    slot = KNOWLEDGE_SLOT if criterion.tier == Tier.CONTEXT else ""
    return GENERATED.format(slot=slot, question=version.question, definition=version.definition)


def _asks(text: str, question: str) -> bool:
    """A shipped prompt serves only the question it was written for."""
    return sections(text).get("objective", "").lstrip().startswith(question)
