"""Criteria share a call by rule, and every role starts with settings that fit its model."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

import pytest

from evaluation.core.grouping import Groupable, Grouping, group_criteria
from evaluation.core.types import Engine
from evaluation.endpoints.core.known_models import known_profile
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.engines.core.roles import NAMES, engine_roles
from evaluation.judges.core.sampling_defaults import default_sampling, not_taken, sent_differences
from tests.factories.scripted_model import PLAIN, default_roles

PROMPTS = Path(__file__).parents[3] / "evaluation" / "prompts" / "shipped"
OPENAI_REASONS = known_profile(endpoint="https://api.openai.com/v1", model="o3")
RUBRIC = Path(__file__).parents[3] / "labeling" / "rubric" / "default_rubric.json"


def shipped() -> list[Groupable]:
    criteria = json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"]
    return [Groupable(c["key"], c["dimension"], c["tier"], c.get("critical", False)) for c in criteria]


@pytest.mark.parametrize("mode", get_args(Grouping))
def test_every_criterion_is_in_exactly_one_group(mode: Grouping) -> None:
    keys = [key for group in group_criteria(shipped(), mode=mode) for key in group]
    assert sorted(keys) == sorted(c.key for c in shipped())


def test_auto_asks_context_subjective_and_critical_criteria_alone() -> None:
    by_key = {c.key: c for c in shipped()}
    for group in group_criteria(shipped(), mode="auto"):
        if len(group) > 1:
            members = [by_key[key] for key in group]
            assert {c.tier for c in members} == {"simple"}
            assert not any(c.critical for c in members)
            assert len({c.dimension for c in members}) == 1


def test_auto_never_joins_more_than_four() -> None:
    simple = [Groupable(f"k{i}", "d", "simple", False) for i in range(9)]
    assert [len(group) for group in group_criteria(simple, mode="auto")] == [4, 4, 1]


def test_other_modes_group_by_criterion_dimension_or_rubric() -> None:
    assert len(group_criteria(shipped(), mode="criterion")) == len(shipped())
    assert len(group_criteria(shipped(), mode="dimension")) == len({c.dimension for c in shipped()})
    assert len(group_criteria(shipped(), mode="rubric")) == 1


@pytest.mark.parametrize("mode", get_args(Grouping))
def test_no_criteria_give_no_groups(mode: Grouping) -> None:
    assert group_criteria([], mode=mode) == ()


@pytest.mark.parametrize("engine", get_args(Engine))
@pytest.mark.parametrize(
    ("endpoint", "profile"), [("e", PLAIN), ("e", ModelProfile(reasons=True)), ("embedded:f", PLAIN)]
)
def test_every_role_of_an_engine_has_settings(engine: Engine, endpoint: str, profile: ModelProfile) -> None:
    roles = default_roles(engine=engine, profile=profile, endpoint=endpoint, model="m")
    assert set(roles) == set(engine_roles(engine))
    assert all(sampling.room(2) > sampling.room(1) > 0 for sampling in roles.values())


def test_room_grows_with_the_criteria() -> None:
    sampling = default_sampling(role="direct", profile=PLAIN, endpoint="e", model="m")
    assert (sampling.room(1), sampling.room(4)) == (650, 1700)


def test_reasoning_models_get_an_effort_by_role_and_neither_temperature_nor_logprobs() -> None:
    roles = {
        role: default_sampling(
            role=role, profile=OPENAI_REASONS, endpoint="e", model="gpt-5-mini", logprobs=True
        )
        for role in NAMES
    }
    assert {sampling.temperature for sampling in roles.values()} == {None}
    assert not any(sampling.logprobs for sampling in roles.values())
    assert {role: sampling.reasoning_effort for role, sampling in roles.items()} == {
        "direct": "medium",
        "reflector": "medium",
        "judge": "medium",
        "customer": "low",
        "support": "low",
        "formatter": "minimal",
    }


@pytest.mark.parametrize(
    ("model", "effort"),
    [("gpt-5", "minimal"), ("openai/gpt-5-nano", "minimal"), ("gpt-5.1", "low"), ("o3", "low")],
)
def test_formatter_asks_for_the_least_effort_that_its_model_knows(model: str, effort: str) -> None:
    sampling = default_sampling(role="formatter", profile=OPENAI_REASONS, endpoint="e", model=model)
    assert sampling.reasoning_effort == effort


def test_other_models_get_a_temperature_and_no_effort() -> None:
    sampling = default_sampling(role="direct", profile=PLAIN, endpoint="e", model="m")
    assert (sampling.temperature, sampling.reasoning_effort) == (0.0, None)


def test_a_chosen_setting_is_sent_unless_the_model_is_known_to_refuse_it() -> None:
    refuses = ModelProfile(effort=False, temperature=False, logprobs=False)
    chosen: dict[str, Any] = {
        "role": "direct",
        "model": "m",
        "effort": "high",
        "temperature": 0.3,
        "logprobs": True,
    }
    unknown = default_sampling(profile=PLAIN, endpoint="e", **chosen)
    assert (unknown.reasoning_effort, unknown.temperature, unknown.logprobs) == ("high", 0.3, True)
    known = default_sampling(profile=refuses, endpoint="e", **chosen)
    assert (known.reasoning_effort, known.temperature, known.logprobs) == (None, None, False)
    assert not_taken(profile=PLAIN, **chosen) == []
    assert not_taken(profile=refuses, **chosen) == [
        "model m takes no reasoning effort: high is not sent for the role First pass",
        "model m takes no temperature: 0.3 is not sent for the role First pass",
        "model m gives no token probabilities for the role First pass",
    ]


def test_the_nearest_effort_that_a_model_takes_is_said_and_recorded() -> None:
    profile = ModelProfile(efforts=("low", "medium"))
    chosen: dict[str, Any] = {"role": "judge", "model": "m", "temperature": None, "logprobs": False}
    assert not_taken(profile=profile, effort="low", **chosen) == []
    assert not_taken(profile=profile, effort="xhigh", **chosen) == [
        "model m takes no effort xhigh: medium is sent for the role Judge"
    ]
    roles = {"judge": {"model": "m", "reasoning_effort": "xhigh"}, "direct": {"model": "m"}}
    assert sent_differences(roles, {"m": profile}) == {"m": {"reasoning_effort": "medium"}}


@pytest.mark.parametrize(("effort", "room"), [("low", 8_900), ("", 12_900), ("high", 24_900)])
def test_a_model_that_reasons_gets_room_for_its_thoughts_by_effort(effort: str, room: int) -> None:
    sampling = default_sampling(
        role="direct", profile=OPENAI_REASONS, endpoint="e", model="o3", effort=effort
    )
    assert sampling.room(1) == room


def test_a_model_that_reasons_without_an_effort_keeps_its_own_temperature() -> None:
    sampling = default_sampling(
        role="direct", profile=ModelProfile(reasons=True), endpoint="e", model="qwen3"
    )
    assert (sampling.temperature, sampling.reasoning_effort) == (None, None)


def test_chosen_temperature_and_effort_replace_the_usual_ones() -> None:
    warm = default_sampling(role="judge", profile=PLAIN, endpoint="e", model="m", samples=3, temperature=0)
    assert warm.temperature == 0
    hard = default_sampling(role="judge", profile=OPENAI_REASONS, endpoint="e", model="o3", effort="high")
    assert hard.reasoning_effort == "high"


def test_logprobs_are_asked_of_the_roles_that_give_verdicts() -> None:
    asked = {
        role
        for role in NAMES
        if default_sampling(role=role, profile=PLAIN, endpoint="e", model="m", logprobs=True).logprobs
    }
    assert asked == {"direct", "reflector", "judge"}


def test_more_samples_ask_for_variety_but_never_of_the_formatter() -> None:
    roles = default_roles(engine="debate", endpoint="e", model="m", samples=3)
    assert {role: sampling.temperature for role, sampling in roles.items()} == {
        "customer": 0.7,
        "support": 0.7,
        "judge": 0.7,
        "formatter": 0.0,
    }


def test_criteria_that_exclude_each_other_share_no_call_by_themselves() -> None:
    """Where a person joins them by dimension or rubric, each one's text says what belongs to the other."""
    exclusive = {"contextual_relevancy", "stated_wrong_fact"}
    assert not any(exclusive <= set(group) for group in group_criteria(shipped(), mode="auto"))
    for key, other in permutations(exclusive):
        text = (PROMPTS / f"{key}.md").read_text(encoding="utf-8")
        assert other in text
        assert "**Boundary:**" in text
