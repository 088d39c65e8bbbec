"""The examples in the docstrings of the pure room are what the code answers."""

import doctest
import importlib
import pkgutil

import pytest

import labeling.core

MODULES = [name for _, name, _ in pkgutil.walk_packages(labeling.core.__path__, "labeling.core.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
