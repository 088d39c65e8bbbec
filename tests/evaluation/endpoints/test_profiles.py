"""What a model takes: the workspace's word, then what was learned, then the shipped table, then defaults."""

from typing import Any

import pytest

from common.problems import FieldProblem
from evaluation.endpoints.core.known_models import cheap_model, known_profile
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.queries import model_profile
from evaluation.endpoints.services import model_forget, model_learn, model_set

HOST = "http://localhost:8000/v1"
OPENAI = "https://api.openai.com/v1"
AZURE = "https://contoso.openai.azure.com/openai/v1"


@pytest.mark.parametrize(
    "model",
    [
        *("o3", "o4-mini", "gpt-5-nano", "gpt-5.1", "openai/o3", "openai/gpt-5-mini", "gpt-oss-120b"),
        *("gpt-oss:20b", "gemini-2.5-pro", "google/gemini-3-flash", "Qwen/Qwen3-32B", "qwen3:8b", "QwQ-32B"),
        *("deepseek-reasoner", "deepseek-ai/DeepSeek-R1", "deepseek-r1:14b", "grok-4", "x-ai/grok-3-mini"),
        *("magistral-medium-latest", "kimi-k2-thinking", "zai-org/GLM-4.6", "phi-4-reasoning-plus"),
        "qwen3-235b-a22b-thinking-2507",
    ],
)
def test_a_model_that_reasons_is_known_by_its_name_wherever_it_runs(model: str) -> None:
    found = known_profile(endpoint=HOST, model=model)
    assert (found.reasons, found.source("reasons")) == (True, "known model")


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-4.1-mini", "gpt-4o", "gpt-5-chat-latest", "gpt-5.1-chat-latest", "olmo-2", "yolo3"),
        *("claude-haiku-4-5", "mistral-small-latest", "deepseek-chat", "gemini-2.0-flash", "prod-judge"),
        *("qwen3-30b-a3b-instruct-2507", "qwen2.5-7b", "grok-3", "grok-4-fast-non-reasoning"),
    ],
)
def test_other_models_are_not_taken_for_one_that_reasons(model: str) -> None:
    assert not known_profile(endpoint=HOST, model=model).reasons


@pytest.mark.parametrize(
    ("endpoint", "model", "facts"),
    [
        (OPENAI, "gpt-4.1", {"token_limit": "max_completion_tokens", "cache_key": True}),
        (AZURE, "prod-judge", {"token_limit": "max_completion_tokens", "cache_key": None}),
        (HOST, "o3", {"token_limit": "max_completion_tokens", "temperature": False, "effort": True}),
        (HOST, "prod-judge", {"token_limit": "max_tokens", "temperature": None, "schema": "json_schema"}),
        ("https://api.deepseek.com", "deepseek-chat", {"schema": "json_object"}),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", {"cache_control": True}),
    ],
)
def test_the_host_and_the_name_say_what_a_request_may_hold(
    endpoint: str, model: str, facts: dict[str, Any]
) -> None:
    found = known_profile(endpoint=endpoint, model=model)
    assert {name: getattr(found, name) for name in facts} == facts


@pytest.mark.django_db
def test_the_workspace_overrules_what_was_learned_and_that_overrules_the_table() -> None:
    model_learn(endpoint=HOST, model="o3", changes={"temperature": True, "effort": False})
    model_set(endpoint=HOST, model="o3", changes={"effort": True, "room": 9000})
    found = model_profile(endpoint=HOST, model="o3")
    assert [(name, getattr(found, name), found.source(name)) for name in ("reasons", "temperature")] == [
        ("reasons", True, "known model"),
        ("temperature", True, "learned"),
    ]
    assert (found.effort, found.source("effort"), found.room) == (True, "workspace", 9000)
    model_set(endpoint=HOST, model="o3", changes={"effort": None})
    assert model_profile(endpoint=HOST, model="o3").source("effort") == "learned"
    model_forget(endpoint=HOST, model="o3")
    assert model_profile(endpoint=HOST, model="o3").source("effort") == "known model"
    assert model_profile(endpoint=OPENAI, model="o3").room is None  # another endpoint is another model


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": True}, "colour: is not a setting of a model"),
        ({"schema": "xml"}, "schema: must be one of json_schema, json_object, text, not 'xml'"),
        ({"room": 0}, "room: must be a whole number from 1 to 10,000,000, not 0"),
        ({"effort": "high"}, "effort: must be true or false, not 'high'"),
        ({"extra": {"messages": []}}, "extra: must not set messages"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(FieldProblem) as refused:
        model_set(endpoint=HOST, model="m", changes=changes)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("profile", "tokens", "prompt", "limit"),
    [
        (ModelProfile(), 650, 100, 650),
        (ModelProfile(reasons=True), 650, 100, 12_650),
        (ModelProfile(reasons=True), 12_950, 100, 12_950),
        (ModelProfile(most_tokens=500), 650, 100, 500),
        (ModelProfile(context=1000), 650, 600, 400),
        (ModelProfile(context=1000), 650, 990, 650),  # the endpoint says in its words that it is too long
    ],
)
def test_the_limit_leaves_room_for_thoughts_within_what_the_model_accepts(
    profile: ModelProfile, tokens: int, prompt: int, limit: int
) -> None:
    assert profile.limit(tokens=tokens, effort=None, prompt_tokens=prompt) == limit


def test_a_cheap_model_is_known_at_the_vendors_own_hosts() -> None:
    assert cheap_model("https://api.mistral.ai/v1") == "mistral-small-latest"
    assert cheap_model(HOST) == ""
