"""Which criteria share a call, and the sampling settings a judge starts with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.core.types import Engine, Role, Sampling, Tier

Grouping = Literal["criterion", "dimension", "rubric", "auto"]
ModelKind = Literal["standard", "reasoning", "embedded"]
Groups = tuple[tuple[str, ...], ...]

LARGEST_AUTO_GROUP = 4

ENGINE_ROLES: Mapping[Engine, tuple[Role, ...]] = {
    "direct": ("direct", "formatter"),
    "reflection": ("direct", "reflector", "formatter"),
    "debate": ("customer", "support", "judge", "formatter"),
}

# Those whose answers end in verdicts.
_VERDICT_ROLES: tuple[Role, ...] = ("direct", "reflector", "judge")
# The first GPT-5 models only; those before and after refuse this effort.
_KNOWS_MINIMAL = re.compile(r"(^|/)gpt-5(?!\.)")

# Token limits of an answer: (base, for each criterion). Start values, except where a comment says measured.
_ROOM: Mapping[ModelKind, Mapping[Role, tuple[int, int]]] = {
    "standard": {
        "direct": (300, 350),
        "judge": (300, 500),
        "reflector": (300, 300),
        "customer": (100, 250),
        "support": (100, 250),
        "formatter": (100, 120),
    },
    "reasoning": {  # hidden and visible tokens together
        "direct": (6000, 600),
        "judge": (6000, 600),
        "reflector": (6000, 500),
        "customer": (3000, 350),
        "support": (3000, 350),
        "formatter": (1000, 150),
    },
    "embedded": {  # measured: a whole answer takes 9 to 50 tokens, the formatter's JSON 50 to 80
        "direct": (40, 60),
        "judge": (40, 60),
        "reflector": (40, 60),
        "customer": (20, 60),
        "support": (20, 60),
        "formatter": (60, 60),
    },
}


@dataclass(frozen=True, slots=True)
class Groupable:
    """What decides in which group a criterion is judged."""

    key: str
    dimension: str
    tier: Tier
    critical: bool


def group_criteria(criteria: Sequence[Groupable], *, mode: Grouping) -> Groups:
    """Return the keys of each call's criteria, in the rubric's order.

    `auto`: context, subjective and critical criteria alone, simple ones of one dimension up to four a call.

    >>> simple = [Groupable(key, "compliance", "simple", key == "c") for key in "abc"]
    >>> group_criteria(simple, mode="auto")
    (('a', 'b'), ('c',))
    """
    groups: dict[object, list[str]] = {}
    for criterion in criteria:
        groups.setdefault(_group_of(criterion, mode=mode), []).append(criterion.key)
    largest = LARGEST_AUTO_GROUP if mode == "auto" else max(1, len(criteria))
    return tuple(
        tuple(keys[i : i + largest]) for keys in groups.values() for i in range(0, len(keys), largest)
    )


def _group_of(criterion: Groupable, *, mode: Grouping) -> tuple[str, ...]:
    alone = criterion.critical or criterion.tier != "simple"
    if mode == "criterion" or (mode == "auto" and alone):
        return "criterion", criterion.key
    return ("rubric",) if mode == "rubric" else ("dimension", criterion.dimension)


def default_sampling(
    *,
    role: Role,
    kind: ModelKind,
    endpoint: str,
    model: str,
    samples: int = 1,
    temperature: float | None = None,
    effort: str = "",
    logprobs: bool = False,
) -> Sampling:
    """Return the settings a role starts with, or those given instead; more than one sample: temperature 0.7.

    Only what the kind of model takes is set: a reasoning model gets an effort and neither temperature nor
    logprobs, as most refuse them, every other model no effort. `logprobs` are asked of the roles that answer
    with verdicts.
    """
    base, per_criterion = _ROOM[kind][role]
    thinks = kind == "reasoning"
    usual = _temperature(role, samples=samples) if temperature is None else temperature
    return Sampling(
        endpoint=endpoint,
        model=model,
        temperature=None if thinks else usual,
        max_tokens=base,
        max_tokens_per_criterion=per_criterion,
        reasoning_effort=(effort or _effort(role, model=model)) if thinks else None,
        logprobs=logprobs and not thinks and role in _VERDICT_ROLES,
    )


def _temperature(role: Role, *, samples: int) -> float:
    if role == "formatter":
        return 0.0
    if samples > 1:
        return 0.7
    return 0.4 if role in ("customer", "support") else 0.0


def _effort(role: Role, *, model: str) -> str:
    if role in _VERDICT_ROLES:
        return "medium"
    return "minimal" if role == "formatter" and _KNOWS_MINIMAL.search(model) else "low"
