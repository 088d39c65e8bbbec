"""The examples in the docstrings of the pure rooms are what the code answers."""

import doctest
import importlib
import pkgutil

import pytest

import alignment.core

MODULES = [name for _, name, _ in pkgutil.walk_packages(alignment.core.__path__, "alignment.core.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
