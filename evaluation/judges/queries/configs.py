"""The configuration of a judge from current champions, settings and articles."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from django.conf import settings

from common.problems import FieldProblem, InputProblem
from evaluation.core import types
from evaluation.core.grouping import Groupable, group_criteria
from evaluation.core.hashing import canonical, text_hash
from evaluation.core.transcript_fencing import FENCE_VERSION
from evaluation.endpoints.core.known_models import cheap_model, known_profile
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.queries import profiles_at
from evaluation.engines.core import WINDOWS_VERSION
from evaluation.engines.core.roles import ADVOCATES, ROLES, engine_roles, role_of
from evaluation.engines.core.verdicts import FORMATTER_SCHEMA_VERSION, READER_VERSION
from evaluation.gateway.current import EndpointGone, current_endpoint, endpoint_at, endpoint_id
from evaluation.gateway.embedded import EMBEDDED_MODEL
from evaluation.gateway.endpoints import SIMULATED, Endpoint, endpoint_name
from evaluation.gateway.simulated import SIMULATED_MODEL
from evaluation.judges.core.fingerprint import template_hash
from evaluation.judges.core.sampling_defaults import default_sampling
from evaluation.judges.core.spec import AutoDebates, JudgeSpec
from evaluation.knowledge.core.retrieval import HYBRID, RETRIEVER
from evaluation.models.prompts import (
    ArticleVersion,
    KnowledgeSnapshot,
    PromptVersion,
)
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.examples import examples_of
from evaluation.prompts.queries.versions import champions, newest_versions
from labeling.models.rubric import Criterion, CriterionVersion, Tier

SCHEMA = 2
HOSTED_MODEL = "gpt-4.1-mini"
DEBATED: dict[AutoDebates, tuple[str, ...]] = {
    "context": (Tier.CONTEXT,),
    "context_subjective": (Tier.CONTEXT, Tier.SUBJECTIVE),
}


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The rows that make a judge, by criterion id; examples by prompt version id."""

    criteria: Sequence[Criterion]
    versions: dict[int, CriterionVersion]
    prompts: dict[int, PromptVersion]
    examples: dict[int, tuple[types.Example, ...]]
    articles: dict[int, list[ArticleVersion]]


def judge_configs(
    *, choice: JudgeSpec, scopes: Sequence[Sequence[Criterion]], endpoint: Endpoint
) -> list[dict[str, Any] | None]:
    """Return today's configuration of a recipe for each list of criteria, without writing.

    None if a criterion has no prompt yet. The number of queries does not grow with the lists.
    """
    criteria = list({row.pk: row for scope in scopes for row in scope}.values())
    prompts = champions(criteria=criteria)
    read = {} if choice.knowledge == "none" else articles_of(criteria)
    every = Ingredients(
        criteria=criteria,
        versions=newest_versions(criteria=criteria),
        prompts=prompts,
        examples=examples_of([prompt.pk for prompt in prompts.values()]),
        articles=read,
    )
    profiles = role_profiles(choice=choice, endpoint=endpoint)
    return [_config_today(choice, scope, endpoint, every, profiles) for scope in scopes]


def _config_today(
    choice: JudgeSpec,
    criteria: Sequence[Criterion],
    endpoint: Endpoint,
    every: Ingredients,
    profiles: Mapping[types.Role, ModelProfile],
) -> dict[str, Any] | None:
    if any(row.pk not in every.prompts for row in criteria):
        return None
    articles = {row.pk: every.articles[row.pk] for row in criteria if row.pk in every.articles}
    own = replace(every, criteria=criteria, articles=articles)
    groups = groups_of(choice=choice, endpoint=endpoint, criteria=criteria)
    digest = snapshot_hash(own)
    snapshot = KnowledgeSnapshot(content_hash=digest) if digest else None
    return judge_config(choice, endpoint, groups, own, snapshot, profiles)


def judge_endpoint(choice: JudgeSpec) -> Endpoint:
    """Return the endpoint that a recipe asks, the server's own if it names none.

    Raises EndpointGone for one that cannot be asked, also for a single role; InputProblem where a role at
    another endpoint has no model; KeyUnreadable, and what current_endpoint raises.
    """
    endpoint = endpoint_at(choice.endpoint) if choice.endpoint else current_endpoint()
    for role, other in choice.endpoints.items():
        if other != endpoint.id and not endpoint_at(other).embedded and not choice.models.get(role):
            raise InputProblem(
                f"{role_of(role).name} asks {endpoint_name(other)}: choose its model there in the profile"
            )
    return endpoint


def endpoints_named(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as JSON with the ids of the endpoints that it names; raises FieldProblem."""
    named = dict(recipe)
    try:
        if isinstance(name := named.get("endpoint"), str) and name:
            named["endpoint"] = endpoint_id(name)
    except EndpointGone as gone:
        raise FieldProblem("endpoint", str(gone)) from None
    by_role = named.get("endpoints")
    if isinstance(by_role, Mapping):
        try:
            named["endpoints"] = {role: endpoint_id(str(one)) for role, one in by_role.items() if one}
        except EndpointGone as gone:
            raise FieldProblem("endpoints", str(gone)) from None
    return named


def endpoint_of(role: types.Role, *, choice: JudgeSpec, endpoint: Endpoint) -> str:
    """Return the id of the endpoint that a role asks; `endpoint` is the recipe's."""
    return choice.endpoints.get(role) or choice.endpoint or endpoint.id


def model_of(role: types.Role, *, choice: JudgeSpec, endpoint: Endpoint) -> str:
    """Return a role's model: its own, the recipe's or the endpoint's; the embedded endpoint has only one.

    Beside a model that reasons the formatter, which only copies, is a cheap model where the vendor has one.
    """
    if (asked := endpoint_of(role, choice=choice, endpoint=endpoint)).startswith("embedded:"):
        return EMBEDDED_MODEL
    if asked == SIMULATED:
        return SIMULATED_MODEL
    # The settings name models of the server's own endpoint.
    usual = endpoint.models[0] if endpoint.models else settings.LACE_REASONING_MODEL or HOSTED_MODEL
    reasoning = choice.model or usual
    if role_of(role).output != "copy":
        return choice.models.get(role) or reasoning
    chosen = choice.models.get(role) or choice.formatter
    chosen = chosen or ("" if endpoint.name else settings.LACE_FORMATTER_MODEL)
    if chosen or not known_profile(endpoint=asked, model=reasoning).reasons:
        return chosen or reasoning
    cheap = cheap_model(asked)
    return cheap if cheap and (not endpoint.models or cheap in endpoint.models) else reasoning


def role_profiles(
    *, choice: JudgeSpec, endpoint: Endpoint, learned: bool = False
) -> dict[types.Role, ModelProfile]:
    """Return what each role's model takes, as the table and the workspace say; one query an endpoint.

    What was learned changes how a request is sent, never the judge: else each lesson would make another one.
    """
    models = {
        role.key: types.ModelAt(
            endpoint_of(role.key, choice=choice, endpoint=endpoint),
            model_of(role.key, choice=choice, endpoint=endpoint),
        )
        for role in ROLES
    }
    profiles = profiles_at(models.values(), learned=learned)
    return {role: profiles[at] for role, at in models.items()}


def groups_of(
    *, choice: JudgeSpec, endpoint: Endpoint, criteria: Sequence[Criterion]
) -> list[tuple[types.Engine, tuple[str, ...]]]:
    """Return engine and criterion keys of each group, in order; engine `auto` never mixes engines.

    For the embedded model, grouping `auto` is one criterion per call.
    """
    grouping = "criterion" if _embedded(choice, endpoint) and choice.grouping == "auto" else choice.grouping
    engines = {row.key: _engine_of(row, choice) for row in criteria}
    groups: list[tuple[types.Engine, tuple[str, ...]]] = []
    for engine in get_args(types.Engine):
        rows = [
            Groupable(row.key, row.dimension.key, cast("types.Tier", row.tier), row.critical)
            for row in criteria
            if engines[row.key] == engine
        ]
        groups += [(engine, keys) for keys in group_criteria(rows, mode=grouping)]
    return groups


def _engine_of(criterion: Criterion, choice: JudgeSpec) -> types.Engine:
    if choice.engine != "auto":
        return choice.engine
    return "debate" if criterion.tier in DEBATED[choice.auto_debates] else "direct"


def judge_config(
    choice: JudgeSpec,
    endpoint: Endpoint,
    groups: list[tuple[types.Engine, tuple[str, ...]]],
    ingredients: Ingredients,
    snapshot: KnowledgeSnapshot | None,
    profiles: Mapping[types.Role, ModelProfile],
) -> dict[str, Any]:
    """Return everything that reaches a model or joins its answers; concurrency and prices do not."""
    engines = {engine for engine, _ in groups}
    roles = _roles(engines, choice, endpoint, profiles)
    by_key = {row.key: row for row in ingredients.criteria}
    return {
        "schema": SCHEMA,
        "engine": choice.engine,
        "endpoint": choice.endpoint or endpoint.id,
        "model": _reasoning_models(roles),
        "formatter": roles["formatter"]["model"],
        "roles": roles,
        "samples": choice.samples,
        "groups": [
            {"engine": engine, "criteria": [_criterion_entry(by_key[key], ingredients) for key in keys]}
            for engine, keys in groups
        ],
        # A very small model reads short prompts best; with the chat first its criteria share that prefix.
        "size": "compact" if _embedded(choice, endpoint) else "full",
        "layout": _layout(choice, endpoint),
        "role_in": choice.role_in,
        "order_seed": 0,
        "ablation": choice.ablation if "debate" in engines else "",
        "windows": {**asdict(choice.windows), "version": WINDOWS_VERSION} if choice.windows else None,
        "templates": template_hash(),
        "fence": FENCE_VERSION,
        "reader": READER_VERSION,
        "formatter_schema": FORMATTER_SCHEMA_VERSION,
        "knowledge": _knowledge(choice, snapshot),
    }


def _embedded(choice: JudgeSpec, endpoint: Endpoint) -> bool:
    return (choice.endpoint or endpoint.id).startswith("embedded:")


def _layout(choice: JudgeSpec, endpoint: Endpoint) -> types.Layout:
    if choice.layout != "auto":
        return choice.layout
    return "chat_first" if _embedded(choice, endpoint) else "criteria_first"


def _knowledge(choice: JudgeSpec, snapshot: KnowledgeSnapshot | None) -> dict[str, Any]:
    pinned: dict[str, Any] = {"mode": choice.knowledge, "snapshot": snapshot.content_hash if snapshot else ""}
    if choice.knowledge != "retrieved":
        return pinned
    pinned |= {"tokens": choice.passage_tokens, "retriever": dict(RETRIEVER)}
    # Missing without a model: such a judge keeps its fingerprint.
    hybrid = {"embedding_model": choice.embedding_model, "hybrid": dict(HYBRID)}
    return pinned | (hybrid if choice.embedding_model else {})


def _roles(
    engines: set[types.Engine],
    choice: JudgeSpec,
    endpoint: Endpoint,
    profiles: Mapping[types.Role, ModelProfile],
) -> dict[str, Any]:
    roles = sorted({role for engine in engines for role in engine_roles(engine)})
    return {role: _role(role, choice, endpoint, profiles[role]) for role in roles}


def _role(role: types.Role, choice: JudgeSpec, endpoint: Endpoint, profile: ModelProfile) -> dict[str, Any]:
    sampling = default_sampling(
        role=role,
        profile=profile,
        endpoint=endpoint_of(role, choice=choice, endpoint=endpoint),
        model=model_of(role, choice=choice, endpoint=endpoint),
        samples=choice.samples,
        temperature=choice.temperatures.get(role),
        effort=choice.efforts.get(role, ""),
        logprobs=choice.logprobs,
    )
    # Missing without further fields: such a judge keeps its fingerprint.
    return {name: value for name, value in asdict(sampling).items() if name != "extra" or value}


def _reasoning_models(roles: Mapping[str, Any]) -> str:
    """Return the models that reason, the deciding ones first; they name the judge."""
    deciding = [role for role in reversed(ROLES) if role.output == "verdicts"]
    keys = [role.key for role in (*deciding, *ADVOCATES) if role.key in roles]
    return " + ".join(dict.fromkeys(roles[key]["model"] for key in keys))


def _criterion_entry(row: Criterion, ingredients: Ingredients) -> list[str]:
    version, prompt = ingredients.versions[row.pk], ingredients.prompts[row.pk]
    examples = [
        [example.content_hash, example.excerpt, example.value, example.rationale]
        for example in ingredients.examples.get(prompt.pk, ())
    ]
    digest = text_hash(canonical([prompt.content_hash, examples])) if examples else prompt.content_hash
    return [row.key, version.content_hash, digest, row.tier]


def snapshot_hash(ingredients: Ingredients) -> str:
    """Return the hash of the article versions that each criterion reads; "" if none are read."""
    keys = {row.pk: row.key for row in ingredients.criteria}
    content = sorted(
        [keys[pk], version.article.key, version.number, version.content_hash]
        for pk, versions in ingredients.articles.items()
        for version in versions
    )
    return text_hash(canonical(content)) if content else ""
