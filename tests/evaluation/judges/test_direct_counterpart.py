"""Which direct judge is the same as a debate, save for the briefs."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from evaluation.judges.core.direct_counterpart import debated_criteria, is_direct_counterpart

Config = dict[str, Any]

ROLE = {"endpoint": "e", "model": "m", "temperature": 0.0, "max_tokens": 300, "max_tokens_per_criterion": 350}
FORMATTER = ROLE | {"max_tokens": 100}
FACT, POLITE = ["fact", "q1", "p1", "context"], ["polite", "q2", "p2", "simple"]
SHARED: Config = {
    "endpoint": "e",
    "samples": 1,
    "templates": "t",
    "reader": 3,
    "knowledge": {"mode": "static", "snapshot": "s"},
}
DIRECT: Config = SHARED | {
    "engine": "direct",
    "model": "m",
    "ablation": "",
    "roles": {"direct": ROLE, "formatter": FORMATTER},
    "groups": [
        {"engine": "direct", "criteria": [FACT]},
        {"engine": "direct", "criteria": [POLITE]},
    ],
}
DEBATE: Config = SHARED | {
    "engine": "debate",
    "model": "m + cheap",
    "ablation": "",
    "roles": {
        "customer": ROLE | {"model": "cheap", "temperature": 0.4},
        "support": ROLE | {"model": "cheap", "temperature": 0.4},
        "judge": ROLE | {"max_tokens_per_criterion": 500},
        "formatter": FORMATTER,
    },
    "groups": [
        {"engine": "debate", "criteria": [FACT]},
        {"engine": "debate", "criteria": [POLITE]},
    ],
}


def changed(config: Config, change: Callable[[Config], object]) -> Config:
    other = copy.deepcopy(config)
    change(other)
    return other


def test_token_limits_advocates_and_ablations_make_no_difference() -> None:
    assert is_direct_counterpart(DIRECT, DEBATE)
    assert is_direct_counterpart(DIRECT, DEBATE | {"ablation": "no_briefs"})


def test_the_debated_criteria_of_a_mixed_judge_are_compared() -> None:
    mixed = changed(DEBATE, lambda one: one["groups"][1].update(engine="direct")) | {"engine": "auto"}
    assert debated_criteria(mixed) == {"fact"}
    assert is_direct_counterpart(DIRECT, mixed)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(templates="another wording"),
        lambda one: one.update(samples=3),
        lambda one: one["knowledge"].update(snapshot="other articles"),
        lambda one: one["roles"]["direct"].update(model="other"),
        lambda one: one["roles"]["direct"].update(temperature=0.7),
        lambda one: one["roles"]["formatter"].update(model="other"),
        lambda one: one["groups"][0]["criteria"][0].__setitem__(2, "other prompt"),
        lambda one: one["groups"][0]["criteria"].append(POLITE),
        lambda one: one["groups"].pop(),
        lambda one: one.update(engine="reflection"),
        lambda one: one.update(windows={"tokens": 1000}),
    ],
)
def test_any_other_difference_makes_another_judge(change: Callable[[Config], object]) -> None:
    assert not is_direct_counterpart(changed(DIRECT, change), DEBATE)


def test_a_judge_without_a_debate_has_no_counterpart() -> None:
    assert not is_direct_counterpart(DIRECT, DIRECT)
    assert not is_direct_counterpart(DIRECT, {})
    assert debated_criteria({}) == frozenset()
