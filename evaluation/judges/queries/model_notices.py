"""What a person should know of a recipe's models before they are paid for."""

from typing import get_args

from evaluation.core.types import Engine, Role
from evaluation.endpoints.queries import tested_models
from evaluation.engines.core.roles import engine_roles, role_of
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.sampling_defaults import not_taken
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import endpoint_of, model_of, role_profiles


def model_notices(*, choice: JudgeSpec, endpoint: Endpoint) -> list[str]:
    """Return a sentence for each setting that a model does not take, a dear formatter and untested models."""
    return [
        *settings_not_taken(choice=choice, endpoint=endpoint),
        *_dear_formatter(choice, endpoint),
        *_never_tested(choice, endpoint),
    ]


def settings_not_taken(*, choice: JudgeSpec, endpoint: Endpoint) -> list[str]:
    """Return a sentence for each setting of a recipe that a role's model does not take; one query."""
    asked = roles_asked(choice)
    sentences = [
        sentence
        for role, profile in role_profiles(choice=choice, endpoint=endpoint, learned=True).items()
        if role in asked
        for sentence in not_taken(
            role=role,
            profile=profile,
            model=model_of(role, choice=choice, endpoint=endpoint),
            temperature=choice.temperatures.get(role),
            effort=choice.efforts.get(role, ""),
            logprobs=choice.logprobs,
        )
    ]
    return list(dict.fromkeys(sentences))


def roles_asked(choice: JudgeSpec) -> set[Role]:
    """Return the roles that a recipe's engine asks; engine `auto` may ask all."""
    engines = get_args(Engine) if choice.engine == "auto" else (choice.engine,)
    return {role for engine in engines for role in engine_roles(engine)}


def _dear_formatter(choice: JudgeSpec, endpoint: Endpoint) -> list[str]:
    """Say that a model that reasons is asked to copy verdicts, which a cheap one does as well."""
    copies = next(role for role in roles_asked(choice) if role_of(role).output == "copy")
    if not role_profiles(choice=choice, endpoint=endpoint, learned=True)[copies].reasons:
        return []
    model = model_of(copies, choice=choice, endpoint=endpoint)
    return [
        f"model {model} reasons, but the formatter only copies verdicts: choose a cheaper formatter model"
    ]


def _never_tested(choice: JudgeSpec, endpoint: Endpoint) -> list[str]:
    asked: dict[str, set[str]] = {}
    for role in roles_asked(choice):
        name = endpoint_of(role, choice=choice, endpoint=endpoint)
        asked.setdefault(name, set()).add(model_of(role, choice=choice, endpoint=endpoint))
    untested = sorted(
        {
            model
            for name, models in asked.items()
            for model in models - tested_models(endpoint=name, models=models)
        }
    )
    return [f"model {model} was never tested here: run its model test first" for model in untested]
