"""A scripted model and small specimens for the tests of the core."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.core.types import (
    Article,
    Chat,
    Criterion,
    Engine,
    GroupResult,
    Message,
    Model,
    Reply,
    ReplyState,
    Request,
    Role,
    Sampling,
    Setup,
    VerdictResult,
)
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.engines.core import judge_group
from evaluation.engines.core.roles import engine_roles
from evaluation.judges.core.sampling_defaults import default_sampling

PLAIN = ModelProfile()
SECRET = b"a secret of the workspace"

CHAT = Chat(
    content_hash="c0ffee",
    messages=(
        Message(1, "user", "My card was declined, I need zebra-striped eggs."),
        Message(2, "assistant", "Please ask your bank about it."),
        Message(3, "tool", '{"status": "declined"}'),
        Message(4, "user", "Useless."),
    ),
)

POLITE = Criterion(
    key="polite",
    question="Was every bot message polite?",
    definition="True when no message is rude.",
    tier="simple",
    passes_when=True,
    allow_na=False,
    prompt="",
    articles=(),
)
WRONG_FACT = Criterion(
    key="wrong_fact",
    question="Did the bot state a wrong fact?",
    definition="A checkable statement that the knowledge contradicts.",
    tier="context",
    passes_when=False,
    allow_na=True,
    prompt="",
    articles=(Article("k1_payment", 3, "How shoppers pay", "Shoppers pay with a company card."),),
)

BOTH = (POLITE, WRONG_FACT)
BAD: list[ReplyState] = ["refused", "too_long", "failed"]
CLEAR = '{"verdicts": {"polite": {"value": "false", "explanation": "It was rude."}}}'
UNCLEAR = '{"verdicts": {"polite": {"value": "unclear", "explanation": ""}}}'


def answered(text: str) -> Reply:
    return Reply("answered", text)


def verdicts(**values: str) -> Reply:
    """A reply with a VERDICTS block of these answers."""
    lines = [f"{key}: {value}" for key, value in values.items()]
    return answered("\n".join(["What the chat shows.", "VERDICTS", *lines]))


@dataclass
class Script(Model):
    """Answers each role with its replies, in turn; every request is kept. A call's handle is its number."""

    replies: dict[Role, list[Reply]]
    requests: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self.replies[request.role].pop(0)
        return replace(reply, call=len(self.requests))

    def asked(self, role: Role) -> list[Request]:
        return [request for request in self.requests if request.role == role]

    def prompt(self, role: Role, *, nth: int = 0) -> str:
        return "\n\n".join(message.text for message in self.asked(role)[nth].messages)


@dataclass
class Answering(Model):
    """Answers by the request itself, for passes that race; every request is kept, a handle is its number."""

    answer: Callable[[Request], Reply]
    requests: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        number = len(self.requests)
        await asyncio.sleep(0)
        return replace(self.answer(request), call=number)


def default_roles(
    *, engine: Engine, profile: ModelProfile = PLAIN, endpoint: str, model: str, samples: int = 1
) -> dict[Role, Sampling]:
    """The starting settings of every role an engine uses, all on one model."""
    return {
        role: default_sampling(role=role, profile=profile, endpoint=endpoint, model=model, samples=samples)
        for role in engine_roles(engine)
    }


def setup_for(engine: Engine, **settings: Any) -> Setup:
    roles = default_roles(engine=engine, endpoint="e", model="m")
    return Setup(engine=engine, roles=roles, **settings)


def judged(
    model: Model,
    *,
    engine: Engine,
    criteria: Sequence[Criterion] = (POLITE,),
    chat: Chat = CHAT,
    audit: float = 0.0,
    **settings: Any,
) -> GroupResult:
    """Run an engine to its end; further settings go into its setup."""
    return asyncio.run(
        judge_group(
            chat=chat,
            criteria=criteria,
            setup=setup_for(engine, **settings),
            model=model,
            fence_secret=SECRET,
            audit=audit,
        )
    )


def only(verdicts: tuple[VerdictResult, ...]) -> VerdictResult:
    (verdict,) = verdicts
    return verdict


def roles(model: Script) -> list[Role]:
    return [request.role for request in model.requests]
