"""Prompts as they are built for a chat."""

from evaluation.core.types import Chat, Criterion, PromptMessage, Role, Setup
from evaluation.engines.core.roles import ROLES, role_of
from evaluation.prompts.core import reasoning_messages
from tests.factories.scripted_model import CHAT, POLITE, SECRET, WRONG_FACT, setup_for

REASONING: list[Role] = [role.key for role in ROLES if role.output != "copy"]
SETUP = setup_for("debate")
CO_STAR = (
    "Before all.\n# Context\nThe bot sells baskets.\n{{knowledge}}\n"
    "# Objective\nWas every bot message polite?\nRude counts.\n## Boundary\nFirm is polite.\n"
    "# Style\nEvery message.\n# Tone\nCalm.\n# Audience\nLead.\n# Response\n120 words.\n## Examples\nNone."
)


def build(
    role: Role = "direct",
    *,
    setup: Setup = SETUP,
    criteria: tuple[Criterion, ...] = (POLITE, WRONG_FACT),
    chat: Chat = CHAT,
    evidence: tuple[str, ...] = (),
) -> tuple[PromptMessage, PromptMessage]:
    return reasoning_messages(
        role=role,
        chat=chat,
        criteria=criteria,
        setup=setup,
        fence_secret=SECRET,
        evidence=evidence,
        argues=role_of(role).argues,
    )


def whole(messages: tuple[PromptMessage, ...]) -> str:
    return "\n\n".join(message.text for message in messages)


def in_order(text: str, *pieces: str) -> bool:
    places = [text.index(piece) for piece in pieces]
    return places == sorted(places)
