"""How a verdict came about: the calls of its unit, in order, with prompts and raw answers."""

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.core.verdicts import read_answer
from evaluation.models.runs import ModelCall, TextBlock, UnitCall, Verdict

# The role whose answer carries the final rationale, by engine.
FINAL_ROLES = {"direct": "direct", "reflection": "reflector", "debate": "judge"}
TITLES = {
    "direct": "First pass",
    "reflector": "Reflection",
    "customer": "Customer critic",
    "support": "Support defender",
    "judge": "Judge",
    "formatter": "Formatter",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One call behind a verdict; `text` is the prose, `raw` the answer as it came."""

    role: str
    title: str
    model: str
    state: str
    text: str
    raw: str
    prompt: tuple[tuple[str, str], ...]
    reused: bool
    attempts: int
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int | None


def verdict_steps(verdict: Verdict) -> tuple[Step, ...]:
    """The calls behind a verdict; empty for an imported one."""
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
    uses.sort(key=lambda use: (order.index(use.role), use.step))
    return tuple(_step(use, blocks) for use in uses)


def final_rationales(unit_ids: Iterable[int]) -> dict[int, str]:
    """The prose that each unit's verdicts rest on, by unit id; one query."""
    uses = (
        UnitCall.objects.filter(unit_id__in=unit_ids, role__in=FINAL_ROLES.values())
        .select_related("call")
        .order_by("unit_id", "step")
    )
    order = list(FINAL_ROLES.values())
    final: dict[int, tuple[int, str]] = {}
    for use in uses:
        rank = order.index(use.role)
        if rank >= final.get(use.unit_id, (-1, ""))[0]:
            final[use.unit_id] = (rank, prose(use.call.reply))
    return {unit_id: text for unit_id, (_, text) in final.items()}


def _step(use: UnitCall, blocks: dict[str, TextBlock]) -> Step:
    call = use.call
    return Step(
        role=use.role,
        title=TITLES[use.role],
        model=call.model,
        state=ModelCall.State(call.state).label,
        text=call.reply if use.role == "formatter" else prose(call.reply),
        raw=call.reply,
        prompt=tuple((role, "\n\n".join(blocks[h].text for h in hashes)) for role, hashes in call.parts),
        reused=use.reused,
        attempts=len(call.attempts.all()),
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        latency_ms=call.latency_ms,
    )


def prose(reply: str) -> str:
    """A reasoning answer without its VERDICTS block."""
    return read_answer(reply, criteria=()).prose
