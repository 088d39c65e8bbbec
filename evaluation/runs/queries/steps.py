"""The calls behind a verdict, in order, with prompts, raw answers and attempts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import get_args

from evaluation.core.thinking import part_thinking
from evaluation.core.types import Engine
from evaluation.engines.core.flags import place_of
from evaluation.engines.core.roles import NAMES, final_role
from evaluation.engines.core.verdicts import read_prose
from evaluation.models.runs import Attempt, ModelCall, TextBlock, UnitCall, Verdict

# The role whose answer carries the final rationale, by engine.
FINAL_ROLES = {engine: final_role(engine) for engine in get_args(Engine)}
TITLES = NAMES


@dataclass(frozen=True, slots=True)
class SentAttempt:
    """One HTTP request of a call: when it was sent, its outcome, its duration in seconds."""

    number: int
    sent_at: datetime
    outcome: str
    status: int | None
    seconds: float | None
    error: str


@dataclass(frozen=True, slots=True)
class Step:
    """One call behind a verdict; `text` is the prose, `raw` the answer with its block.

    `window` and `sample` count from 0. `prompt` is empty if an earlier call of the verdict had the same text
    (`repeats`), as samples of a question do.
    """

    role: str
    title: str
    step: int
    window: int
    sample: int
    model: str
    state: str
    error: str
    text: str
    raw: str
    thinking: str
    prompt: tuple[tuple[str, str], ...]
    repeats: bool
    reused: bool
    attempts: tuple[SentAttempt, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: Decimal | None
    latency_ms: int | None


def verdict_steps(verdict: Verdict) -> tuple[Step, ...]:
    """Return the calls behind a verdict, by window, sample and role; none for an imported one."""
    if verdict.unit_id is None:
        return ()
    uses = list(
        UnitCall.objects.filter(unit_id=verdict.unit_id)
        .select_related("call")
        .prefetch_related("call__attempts")
    )
    blocks = TextBlock.objects.in_bulk(
        {hash for use in uses for _, hashes in use.call.parts for hash in hashes}
    )
    order = list(TITLES)
    uses.sort(key=lambda use: (use.window, use.sample, order.index(use.role), use.step))
    shown: set[str] = set()
    return tuple(_step(use, blocks, shown) for use in uses)


def final_rationales(verdicts: Iterable[Verdict]) -> dict[int, str]:
    """Return the prose behind each verdict, by verdict id; one query.

    With several samples and windows it is the one that gave the verdict.
    """
    rows = [row for row in verdicts if row.unit_id is not None]
    order = list(FINAL_ROLES.values())
    final: dict[tuple[int, int, int], tuple[int, ModelCall]] = {}
    for use in (
        UnitCall.objects.filter(unit_id__in={row.unit_id for row in rows}, role__in=order)
        .select_related("call")
        .order_by("unit_id", "step")
    ):
        place, rank = (use.unit_id, use.window, use.sample), order.index(use.role)
        if place not in final or rank >= final[place][0]:
            final[place] = (rank, use.call)
    places = {row.pk: (row.unit_id, *taken_from(row)) for row in rows}
    return {pk: prose(final[place][1].reply) for pk, place in places.items() if place in final}


def taken_from(verdict: Verdict) -> tuple[int, int]:
    """Return the window and sample that gave a verdict; 0 where no flag names one."""
    return place_of(verdict.flags, "from_window") or 0, place_of(verdict.flags, "from_sample") or 0


def _step(use: UnitCall, blocks: dict[str, TextBlock], shown: set[str]) -> Step:
    """Return one call's step; `shown` holds the prompts of earlier steps and is extended."""
    call, sent = use.call, repr(use.call.parts)
    answer, thinking = part_thinking(call.reply)
    repeats = sent in shown
    shown.add(sent)
    parts = () if repeats else call.parts
    return Step(
        role=use.role,
        title=TITLES[use.role],
        step=use.step,
        window=use.window,
        sample=use.sample,
        model=call.model,
        state=ModelCall.State(call.state).label,
        error=call.error,
        text=call.reply if use.role == "formatter" else prose(call.reply),
        raw=answer,
        thinking=call.thinking or thinking,
        prompt=tuple((role, "\n\n".join(blocks[h].text for h in hashes)) for role, hashes in parts),
        repeats=repeats,
        reused=use.reused,
        attempts=tuple(_attempt(row) for row in call.attempts.all()),
        prompt_tokens=call.prompt_tokens,
        cached_tokens=call.cached_tokens,
        completion_tokens=call.completion_tokens,
        reasoning_tokens=call.reasoning_tokens,
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
    )


def _attempt(row: Attempt) -> SentAttempt:
    return SentAttempt(
        number=row.number,
        sent_at=row.sent_at,
        outcome=Attempt.Outcome(row.outcome).label,
        status=row.status,
        seconds=(row.ended_at - row.sent_at).total_seconds() if row.ended_at else None,
        error=row.error,
    )


def prose(reply: str) -> str:
    """Return a reasoning answer without its VERDICTS block."""
    return read_prose(part_thinking(reply).answer)
