"""The sampling settings that a role starts with."""

import re
from collections.abc import Mapping
from typing import Literal

from evaluation.core.types import Role, Sampling
from evaluation.engines.core.roles import role_of

ModelKind = Literal["standard", "reasoning", "embedded"]

# The first GPT-5 models only; those before and after refuse this effort.
_ACCEPTS_MINIMAL = re.compile(r"(^|/)gpt-5(?!\.)")

# Token limits of an answer: (base, for each criterion). Start values, unless a comment says measured.
_LIMITS: Mapping[ModelKind, Mapping[str, tuple[int, int]]] = {
    "standard": {
        "direct": (300, 350),
        "judge": (300, 500),
        "reflector": (300, 300),
        "brief": (100, 250),
        "formatter": (100, 120),
    },
    "reasoning": {  # hidden and visible tokens together
        "direct": (6000, 600),
        "judge": (6000, 600),
        "reflector": (6000, 500),
        "brief": (3000, 350),
        "formatter": (1000, 150),
    },
    "embedded": {  # measured: a whole answer has 9 to 50 tokens, the formatter's JSON 50 to 80
        "direct": (40, 60),
        "judge": (40, 60),
        "reflector": (40, 60),
        "brief": (20, 60),
        "formatter": (60, 60),
    },
}


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
    """Return the settings that a role starts with.

    Only settings that the kind of model accepts are set: a reasoning model gets an effort, but neither a
    temperature nor logprobs. Every other model gets no effort.

    Parameters
    ----------
    role : a key of `evaluation.engines.core.roles`.
    kind : which family of settings the model accepts.
    endpoint, model : where the role's calls go.
    samples : answers to each question; with more than one the temperature is 0.7.
    temperature : 0 to 2, instead of the default.
    effort : reasoning effort, instead of the default.
    logprobs : request token probabilities from roles that give verdicts.

    Raises
    ------
    KeyError : unknown role.
    """
    is_brief = role_of(role).output == "brief"
    base, per_criterion = _LIMITS[kind]["brief" if is_brief else role]
    reasons = kind == "reasoning"
    usual = _temperature(role, samples=samples) if temperature is None else temperature
    return Sampling(
        endpoint=endpoint,
        model=model,
        temperature=None if reasons else usual,
        max_tokens=base,
        max_tokens_per_criterion=per_criterion,
        reasoning_effort=(effort or _effort(role, model=model)) if reasons else None,
        logprobs=logprobs and not reasons and role_of(role).output == "verdicts",
    )


def _temperature(role: Role, *, samples: int) -> float:
    output = role_of(role).output
    if output == "copy":
        return 0.0
    if samples > 1:
        return 0.7
    return 0.4 if output == "brief" else 0.0


def _effort(role: Role, *, model: str) -> str:
    output = role_of(role).output
    if output == "verdicts":
        return "medium"
    return "minimal" if output == "copy" and _ACCEPTS_MINIMAL.search(model) else "low"
