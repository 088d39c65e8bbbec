"""A debate with a third advocate, as after a further row in the registry of roles."""

import sys
from dataclasses import replace

import pytest

from evaluation.engines.core import roles
from evaluation.engines.core.roles import role_of
from evaluation.prompts.core.texts import texts

ANALYST = replace(
    role_of("customer"), key="analyst", name="Neutral analyst", short_name="Analyst", argues="passing"
)


def third_advocate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the analyst to the registry, wherever it was imported, and to the texts."""
    every = (*roles.ROLES[:4], ANALYST, *roles.ROLES[4:])
    replaced = (
        (roles.ROLES, every),
        (roles.ADVOCATES, (*roles.ADVOCATES, ANALYST)),
        (roles.NAMES, {role.key: role.name for role in every}),
    )
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            for old, new in replaced:
                if value is old:
                    monkeypatch.setattr(module, name, new)
    for name in ("analyst", "brief_analyst", "no_brief_analyst"):
        for size in ("full", "compact"):
            monkeypatch.setitem(texts(size), name, f"The text {name}.")
