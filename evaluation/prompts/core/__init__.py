"""Prompts: a criterion's CO-STAR text, the roles' duties, and the assembled requests."""

from evaluation.prompts.core.assembly import brief_parts, draft_parts, formatter_messages, reasoning_messages
from evaluation.prompts.core.costar import sections
from evaluation.prompts.core.parts import argued_answer, in_prompt_order

__all__ = [
    "argued_answer",
    "brief_parts",
    "draft_parts",
    "formatter_messages",
    "in_prompt_order",
    "reasoning_messages",
    "sections",
]
