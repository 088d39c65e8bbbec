"""The examples in the core's docstrings are true."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "choice",
    "engines.conduct",
    "engines.windows",
    "flags",
    "grouping",
    "hashing",
    "hostile",
    "knowledge",
    "marks",
    "noise",
    "prefixes",
    "probability",
    "probes.attacks",
    "probes.tally",
    "prompts.costar",
    "prose",
    "quotes",
    "types",
    "verdicts",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_core_module_hold(name: str) -> None:
    result = doctest.testmod(import_module(f"evaluation.core.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
