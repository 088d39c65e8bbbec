"""Shared by every engine: asking a role, and reading its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.core.types import (
    CallUse,
    Chat,
    Criterion,
    Embedder,
    Model,
    Passage,
    PromptMessage,
    Reply,
    Request,
    Role,
    Setup,
)
from evaluation.engines.core.reading import (
    Reading,
    formatter_readings,
    from_failed_reply,
    has_answer,
    is_empty,
    readings_by_rule,
)
from evaluation.engines.core.roles import role_of
from evaluation.engines.core.verdicts import formatter_schema, read_answer
from evaluation.prompts.core import formatter_messages, reasoning_messages

# A cut-off or empty answer is asked again once, with so many times the room.
MORE_ROOM = 4
WHAT_TO_SET = "set `room` of this model higher"


@dataclass(slots=True)
class Session:
    """One pass of an engine over a group of criteria of one chat; it records every call.

    Attributes
    ----------
    chat : what this pass reads: the whole chat, or the window number `window`. `note` says so in the prompt.
    sample : number of this pass over the same question, from 0.
    passages : retrieved passages by criterion key.
    other_chat : another chat of the run, for placebo briefs.
    embedder : gives the vectors that rank its passages.
    last_read : the last reply that was read for verdicts.
    """

    chat: Chat
    criteria: Sequence[Criterion]
    setup: Setup
    model: Model
    fence_secret: bytes
    sample: int = 0
    window: int = 0
    note: tuple[str, ...] = ()
    passages: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)
    other_chat: Chat | None = None
    embedder: Embedder | None = None
    last_read: Reply | None = None
    _calls: dict[tuple[Role, int], object] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """Return the keys of the criteria, in order."""
        return [criterion.key for criterion in self.criteria]

    @property
    def calls(self) -> tuple[CallUse, ...]:
        """Return every call made, in order."""
        return tuple(
            CallUse(role=role, step=step, call=call, window=self.window, sample=self.sample)
            for (role, step), call in self._calls.items()
        )

    async def reason(self, role: Role, *, evidence: tuple[str, ...] = (), again: bool = False) -> Reply:
        """Ask a reasoning role for free prose; `again` repeats the request for a brief that never came.

        Raises KeyError if `setup.roles` lacks the role.
        """
        messages = reasoning_messages(
            role=role,
            chat=self.chat,
            criteria=self.criteria,
            setup=self.setup,
            fence_secret=self.fence_secret,
            evidence=(*self.note, *evidence),
            again=again,
            passages=[passage for retrieved in self.passages.values() for passage in retrieved],
            argues=role_of(role).argues,
        )
        return await self._ask(role, messages, n=len(self.criteria))

    async def read(self, reply: Reply) -> dict[str, Reading]:
        """Return a reading of every key: by rule, else by the formatter."""
        self.last_read = reply
        if not has_answer(reply):
            return {key: from_failed_reply(reply) for key in self.keys}
        answer = read_answer(reply.text, criteria=self.criteria)
        readings = readings_by_rule(answer=answer, keys=self.keys)
        unread = [criterion for criterion in self.criteria if criterion.key not in readings]
        if unread:
            formatted = await self.format(reply.text, unread)
            readings |= formatter_readings(reply=formatted, answer=answer, unread=unread, keys=self.keys)
        return readings

    async def format(self, rationale: str, unread: Sequence[Criterion]) -> Reply:
        """Ask the formatter to copy the conclusions of a rationale on these criteria."""
        size = self.setup.size
        messages = formatter_messages(
            rationale=rationale, criteria=unread, size=size, fence_secret=self.fence_secret
        )
        return await self._ask(
            "formatter", messages, n=len(unread), schema=formatter_schema(unread, size=size)
        )

    async def _ask(
        self, role: Role, messages: tuple[PromptMessage, ...], *, n: int, schema: dict[str, Any] | None = None
    ) -> Reply:
        """Send a request; after a cut-off or empty answer, once more with four times the room."""
        room = self.setup.roles[role].room(n)
        reply = await self._send(role, messages, room=room, schema=schema)
        if not _needs_room(reply):
            return reply
        reply = await self._send(role, messages, room=MORE_ROOM * room, schema=schema)
        if not _needs_room(reply):
            return reply
        words = reply.error or "the answer is empty"
        return replace(reply, error=f"{words}, also with {MORE_ROOM * room:,} tokens; {WHAT_TO_SET}")

    async def _send(
        self, role: Role, messages: tuple[PromptMessage, ...], *, room: int, schema: dict[str, Any] | None
    ) -> Reply:
        sampling = self.setup.roles[role]
        step = 1 + sum(1 for known, _ in self._calls if known == role)
        self._calls[role, step] = None  # reserves the place before parallel answers arrive
        request = Request(
            role=role,
            step=step,
            messages=messages,
            model=sampling.model,
            temperature=sampling.temperature,
            max_tokens=room,
            top_p=sampling.top_p,
            seed=sampling.seed,
            endpoint=sampling.endpoint,
            schema=schema,
            reasoning_effort=sampling.reasoning_effort,
            logprobs=sampling.logprobs,
            extra=sampling.extra,
            sample=self.sample,
            window=self.window,
        )
        reply = await self.model.complete(request)
        self._calls[role, step] = reply.call
        return reply


def _needs_room(reply: Reply) -> bool:
    """Return whether the answer broke off or never came: hidden thoughts may have filled its limit."""
    return reply.state == "cut_off" or is_empty(reply)
