"""The examples in the docstrings of pure modules are what the code answers."""

import doctest
import importlib

import pytest

from tests.pure_rooms import pure_modules

# Modules of the judge whose rules are read from their examples.
WITH_EXAMPLES = {
    "evaluation.core.grouping",
    "evaluation.core.hashing",
    "evaluation.core.prefixes",
    "evaluation.core.transcript_fencing",
    "evaluation.core.types",
    "evaluation.engines.core.advocate_checks",
    "evaluation.engines.core.flags",
    "evaluation.engines.core.injection_detection",
    "evaluation.engines.core.probability",
    "evaluation.engines.core.prose",
    "evaluation.engines.core.quotes",
    "evaluation.engines.core.roles",
    "evaluation.engines.core.verdicts",
    "evaluation.engines.core.windows",
    "evaluation.judges.core.spec",
    "evaluation.knowledge.core.articles",
    "evaluation.probes.core.attacks",
    "evaluation.probes.core.tally",
    "evaluation.prompts.core.costar",
    "evaluation.runs.core.noise",
}


def test_the_rooms_are_found() -> None:
    assert set(pure_modules()) > WITH_EXAMPLES
    assert len(pure_modules()) > 100


@pytest.mark.parametrize("name", pure_modules())
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES
