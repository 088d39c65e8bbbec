"""The sampling settings that a role starts with."""

import re
from collections.abc import Mapping
from typing import Any

from evaluation.core.types import Role, Sampling
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.engines.core.roles import role_of

# The first GPT-5 models only; those before and after refuse this effort.
_ACCEPTS_MINIMAL = re.compile(r"(^|/)gpt-5(?!\.)")

# Token limits of an answer: (base, for each criterion). Start values, unless a comment says measured.
_ANSWERS: Mapping[str, tuple[int, int]] = {
    "direct": (300, 350),
    "judge": (300, 500),
    "reflector": (300, 300),
    "brief": (100, 250),
    "formatter": (100, 120),
}
# Of models that reason, in addition to the room for their thoughts: these grow with the criteria too.
_REASONED: Mapping[str, tuple[int, int]] = {
    "direct": (300, 600),
    "judge": (300, 600),
    "reflector": (300, 500),
    "brief": (100, 350),
    "formatter": (100, 150),
}
_EMBEDDED: Mapping[str, tuple[int, int]] = {
    # measured: a whole answer has 9 to 50 tokens, the formatter's JSON 50 to 80
    "direct": (40, 60),
    "judge": (40, 60),
    "reflector": (40, 60),
    "brief": (20, 60),
    "formatter": (60, 60),
}


def default_sampling(
    *,
    role: Role,
    profile: ModelProfile,
    endpoint: str,
    model: str,
    samples: int = 1,
    temperature: float | None = None,
    effort: str = "",
    logprobs: bool = False,
) -> Sampling:
    """Return the settings that a role starts with.

    Settings that the model is known to refuse are not set. A model that reasons gets room for its thoughts,
    by effort, and its own temperature unless one is chosen. An effort is set for models that take one, and
    where it is chosen for others that are not known to refuse it.

    Parameters
    ----------
    role : a key of `evaluation.engines.core.roles`.
    profile : what the model takes.
    endpoint, model : where the role's calls go.
    samples : answers to each question; with more than one the temperature is 0.7.
    temperature : 0 to 2, instead of the default.
    effort : reasoning effort, instead of the default.
    logprobs : request token probabilities from roles that give verdicts.

    Raises
    ------
    KeyError : unknown role.
    """
    output = role_of(role).output
    reasons = bool(profile.reasons)
    limits = _EMBEDDED if endpoint.startswith("embedded:") else _REASONED if reasons else _ANSWERS
    base, per_criterion = limits["brief" if output == "brief" else role]
    usual_effort = _effort(role, model=model) if reasons and profile.effort else ""
    chosen_effort = None if profile.effort is False else (effort or usual_effort or None)
    usual = None if reasons else _temperature(role, samples=samples)
    return Sampling(
        endpoint=endpoint,
        model=model,
        temperature=None if profile.temperature is False else usual if temperature is None else temperature,
        max_tokens=base + profile.thinking_room(chosen_effort),
        max_tokens_per_criterion=per_criterion,
        reasoning_effort=chosen_effort,
        logprobs=logprobs and profile.logprobs is not False and output == "verdicts",
        extra=dict(profile.extra) or None,
    )


def not_taken(
    *, role: Role, profile: ModelProfile, model: str, temperature: float | None, effort: str, logprobs: bool
) -> list[str]:
    """Return a sentence for each chosen setting of a role that its model does not take.

    Examples
    --------
    >>> profile = ModelProfile(effort=False)
    >>> not_taken(role="judge", profile=profile, model="m", temperature=None, effort="high", logprobs=False)
    ['model m takes no reasoning effort: high is not sent for the role Judge']
    """
    name = role_of(role).name
    sentences = []
    if effort and profile.effort is False:
        sentences.append(f"model {model} takes no reasoning effort: {effort} is not sent for the role {name}")
    elif effort and (nearest := profile.nearest_effort(effort)) != effort:
        sentences.append(f"model {model} takes no effort {effort}: {nearest} is sent for the role {name}")
    if temperature is not None and profile.temperature is False:
        sentences.append(
            f"model {model} takes no temperature: {temperature:g} is not sent for the role {name}"
        )
    if logprobs and profile.logprobs is False and role_of(role).output == "verdicts":
        sentences.append(f"model {model} gives no token probabilities for the role {name}")
    return sentences


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


def sent_differences(
    roles: Mapping[str, Mapping[str, Any]], profiles: Mapping[str, ModelProfile]
) -> dict[str, dict[str, Any]]:
    """Return by model which settings of a judge are sent otherwise: another name or form, None if not at all.

    Examples
    --------
    >>> roles = {"direct": {"model": "m", "temperature": 0.0}}
    >>> sent_differences(roles, {"m": ModelProfile(temperature=False)})
    {'m': {'temperature': None}}
    """
    found: dict[str, dict[str, Any]] = {}
    for role, settings in roles.items():
        profile = profiles.get(str(settings.get("model")))
        if profile is None:
            continue
        changed: dict[str, Any] = {
            name: None
            for name, takes in (
                ("temperature", profile.temperature),
                ("top_p", profile.top_p),
                ("seed", profile.seed),
                ("reasoning_effort", profile.effort),
                ("logprobs", profile.logprobs),
            )
            if takes is False and settings.get(name) is not None and settings[name] is not False
        }
        effort = settings.get("reasoning_effort")
        if profile.effort is not False and (nearest := profile.nearest_effort(effort)) != effort:
            changed["reasoning_effort"] = nearest
        if profile.source("token_limit") == "learned":
            changed["max_tokens"] = profile.token_limit
        if role == "formatter" and profile.schema != "json_schema":
            changed["schema"] = profile.schema
        if changed:
            found.setdefault(str(settings["model"]), {}).update(changed)
    return found
