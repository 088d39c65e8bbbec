"""A judge's recipe in words: the settings of a profile and of a judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.engines.core.roles import ADVOCATES, NAMES
from evaluation.gateway.current import endpoint_names
from evaluation.gateway.endpoints import endpoint_name
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.judges import Judge
from evaluation.models.runs import Run

ENGINES = {
    "direct": "direct: one pass over the chat",
    "reflection": "reflection: a draft, then an audit of it",
    "debate": f"debate: {' and '.join(role.mark for role in ADVOCATES)}, then a Judge",
    "auto": "auto: debate for difficult criteria, direct for the rest",
}
AUTO_DEBATES = {
    "context_subjective": "context and subjective criteria",
    "context": "context criteria",
}
GROUPINGS = {
    "auto": "automatic: difficult criteria alone",
    "criterion": "one per call",
    "dimension": "one dimension per call",
    "rubric": "all in one call",
}
KNOWLEDGE = {
    "none": "none",
    "static": "all of a criterion's articles",
    "retrieved": "passages that match the chat",
}
LAYOUTS = {"criteria_first": "criteria, then the chat", "chat_first": "the chat, then the criteria"}
ROLES_IN = {"user": "at the end of the user message", "system": "in the system message"}
RULES = {"any_fails": "a failing answer in any window decides", "last_decides": "the last window decides"}
ABLATIONS = {
    "no_briefs": "the Judge gets no briefs",
    "placebo_briefs": "the Judge gets the briefs of another chat",
    "swapped_order": "the briefs are in the other order",
}
SETTINGS_MODEL = "the model in the settings"


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a recipe: the setting, its value, and a detail in small print."""

    term: str
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """The model and sampling of one role."""

    role: str
    model: str
    temperature: float | None
    effort: str
    max_tokens: int | None = None
    max_tokens_per_criterion: int | None = None


def recipe_line(choice: JudgeSpec) -> str:
    """Return a recipe in one line: the engine and what differs from the default.

    Examples
    --------
    >>> recipe_line(JudgeSpec("debate", samples=3, knowledge="none"))
    'debate, 3 samples, knowledge none'
    """
    parts: list[str] = [choice.engine]
    if choice.engine == "auto":
        parts.append(f"debate for {AUTO_DEBATES[choice.auto_debates]}")
    if choice.samples > 1:
        parts.append(f"{choice.samples} samples")
    parts.append(f"knowledge {choice.knowledge}")
    if choice.knowledge == "retrieved" and choice.embedding_model:
        parts.append(f"embeddings {choice.embedding_model}")
    if choice.grouping != "auto":
        parts.append(f"grouping {choice.grouping}")
    if choice.windows:
        parts.append("long chats in windows")
    if choice.ablation:
        parts.append(choice.ablation.replace("_", " "))
    return ", ".join(parts)


def recipe_settings(choice: JudgeSpec) -> list[Setting]:
    """Return a recipe line by line."""
    windows = choice.windows
    return [
        Setting("Engine", ENGINES[choice.engine]),
        *([Setting("Debated", AUTO_DEBATES[choice.auto_debates])] if choice.engine == "auto" else []),
        Setting("Endpoint", endpoint_names().get(choice.endpoint, choice.endpoint) or "the server's own"),
        Setting("Model", choice.model or ("the endpoint's first" if choice.endpoint else SETTINGS_MODEL)),
        Setting("Formatter", choice.formatter or "the same model"),
        *_answer_settings(
            samples=choice.samples,
            grouping=choice.grouping,
            knowledge=choice.knowledge,
            tokens=choice.passage_tokens,
            embedding_model=choice.embedding_model,
        ),
        *_prompt_settings(layout=choice.layout, role_in=choice.role_in, logprobs=choice.logprobs),
        _window_setting(
            {"tokens": windows.tokens, "overlap": windows.overlap, "rule": windows.rule} if windows else {}
        ),
        *_ablation_settings(choice.ablation),
    ]


def recipe_roles(choice: JudgeSpec) -> list[RoleSetting]:
    """Return the roles with settings of their own in the recipe."""
    return [
        RoleSetting(
            name,
            at_endpoint(choice.models.get(role, ""), choice.endpoints.get(role, ""), own=choice.endpoint),
            choice.temperatures.get(role),
            choice.efforts.get(role, ""),
        )
        for role, name in NAMES.items()
        if any(
            role in part for part in (choice.endpoints, choice.models, choice.temperatures, choice.efforts)
        )
    ]


def judge_settings(judge: Judge, run: Run | None = None) -> list[Setting]:
    """Return a judge's settings; empty for an imported judge. `run` adds the settings of the run."""
    config = judge.config
    if judge.kind != Judge.Kind.LACE or "groups" not in config:
        return []
    knowledge = config.get("knowledge", {})
    settings = [
        Setting("Engine", ENGINES.get(judge.engine, judge.engine)),
        Setting("Endpoint", str(config.get("endpoint", ""))),
        *_answer_settings(
            samples=config.get("samples", 1),
            grouping="",
            knowledge=str(knowledge.get("mode", "")),
            tokens=knowledge.get("passage_tokens") or knowledge.get("tokens"),
            embedding_model=str(knowledge.get("embedding_model", "")),
        ),
        Setting(
            "Calls per chat", f"{len(config['groups'])} group{'s' if len(config['groups']) != 1 else ''}"
        ),
        *_prompt_settings(
            layout=str(config.get("layout", "")),
            role_in=str(config.get("role_in", "")),
            logprobs=any(entry.get("logprobs") for entry in config.get("roles", {}).values()),
        ),
        Setting("Prompts", f"{config.get('size', 'full')} edition"),
        _window_setting(config.get("windows") or {}),
        *_ablation_settings(str(config.get("ablation") or "")),
        *[Setting("Sent differently", words, "as the model takes it") for words in _sent(judge.sent)],
    ]
    return settings + (_run_settings(run) if run else [])


def _sent(sent: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return by model where its requests differ from the judge's settings.

    Examples
    --------
    >>> _sent({"o3": {"temperature": None, "max_tokens": "max_completion_tokens"}})
    ['o3: without temperature, max_tokens as max_completion_tokens']
    """
    return [
        f"{model}: "
        + ", ".join(
            f"without {name}" if value is None else f"{name} as {value}" for name, value in changed.items()
        )
        for model, changed in sent.items()
    ]


def at_endpoint(model: str, endpoint: str, *, own: str) -> str:
    """Return a role's model, with the endpoint (its id) where it is not the judge's own.

    Examples
    --------
    >>> at_endpoint("m", "http://b/v1", own="http://a/v1"), at_endpoint("m", "http://a/v1", own="http://a/v1")
    ('m at http://b/v1', 'm')
    """
    if endpoint in ("", own):
        return model
    return f"{model} at {endpoint_name(endpoint)}".strip()


def judge_roles(judge: Judge) -> list[RoleSetting]:
    """Return the model and sampling of each role that a judge asks."""
    roles = judge.config.get("roles", {})
    return [
        RoleSetting(
            name,
            at_endpoint(
                str(roles[role].get("model", "")),
                str(roles[role].get("endpoint", "")),
                own=str(judge.config.get("endpoint", "")),
            ),
            roles[role].get("temperature"),
            str(roles[role].get("reasoning_effort") or ""),
            roles[role].get("max_tokens"),
            roles[role].get("max_tokens_per_criterion"),
        )
        for role, name in NAMES.items()
        if role in roles
    ]


def _answer_settings(
    *, samples: Any, grouping: str, knowledge: str, tokens: Any, embedding_model: str
) -> list[Setting]:
    limit = f"up to {tokens:,} tokens per call" if knowledge == "retrieved" and tokens else ""
    if knowledge == "retrieved" and embedding_model:
        limit = f"{limit}, ranked with {embedding_model}".removeprefix(", ")
    return [
        Setting("Samples", str(samples), "majority of the answers" if samples != 1 else ""),
        *([Setting("Criteria per call", GROUPINGS[grouping])] if grouping else []),
        Setting("Knowledge", KNOWLEDGE.get(knowledge, knowledge), limit),
    ]


def _prompt_settings(*, layout: str, role_in: str, logprobs: bool) -> list[Setting]:
    return [
        Setting("Prompt order", LAYOUTS.get(layout, "by model: criteria first if prefixes are cached")),
        Setting("Position of the task", ROLES_IN.get(role_in, role_in)),
        Setting("Probabilities", "requested" if logprobs else "not requested"),
    ]


def _window_setting(windows: Mapping[str, Any]) -> Setting:
    if not windows:
        return Setting("Long chats", "no verdict if the chat is too long")
    rule = RULES.get(str(windows.get("rule")), str(windows.get("rule")))
    size = f"windows of {windows.get('tokens', 0):,} tokens, {windows.get('overlap', 0)} turns shared"
    return Setting("Long chats", size, rule)


def _ablation_settings(name: str) -> list[Setting]:
    return [Setting("Ablation", ABLATIONS.get(name, name))] if name else []


def _run_settings(run: Run) -> list[Setting]:
    options = run.options
    settings = [Setting("Mode", run.get_mode_display())]
    if run.replicate:
        settings.append(Setting("Replicate", str(run.replicate), "ignores stored answers"))
    if options.get("audit"):
        settings.append(Setting("Audit", f"{float(options['audit']):.0%} of readable answers"))
    if options.get("max_in_flight"):
        settings.append(Setting("Calls in flight", str(options["max_in_flight"])))
    return settings
