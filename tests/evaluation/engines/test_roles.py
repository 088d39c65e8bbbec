"""The roles of a judge are in one registry, so that another advocate needs only a row and its texts."""

from collections.abc import Iterator
from typing import get_args

import pytest
from django.conf import settings

from evaluation.core.types import Engine, Size
from evaluation.engines.core.roles import ADVOCATES, NAMES, ROLES, JudgeRole, engine_roles
from evaluation.prompts.core.texts import texts
from tests.factories.scripted_model import Script, answered, judged, only, verdicts
from tests.factories.third_advocate import third_advocate

REGISTRY = "roles.py"
# Names of chat speakers, not of roles.
SPEAKERS = {"transcript_fencing.py", "attacks.py"}


def modules_with(text: str) -> Iterator[str]:
    """Modules that hold this string themselves."""
    for path in sorted(
        path for app in ("evaluation", "alignment") for path in (settings.BASE_DIR / app).rglob("*.py")
    ):
        if path.name == REGISTRY or path.name in SPEAKERS or "migrations" in path.parts:
            continue
        if f'"{text}"' in path.read_text(encoding="utf-8"):
            yield path.name


@pytest.mark.parametrize("advocate", ADVOCATES, ids=lambda role: role.key)
def test_no_other_module_names_an_advocate(advocate: JudgeRole) -> None:
    assert list(modules_with(advocate.key)) == []
    assert list(modules_with(advocate.name)) == []


def test_keys_and_names_are_unique() -> None:
    assert len(NAMES) == len(ROLES) == len({role.name for role in ROLES})


@pytest.mark.parametrize("engine", get_args(Engine))
def test_every_engine_ends_with_the_formatter(engine: Engine) -> None:
    assert engine_roles(engine)[-1] == "formatter"


@pytest.mark.parametrize("size", get_args(Size))
def test_every_advocate_has_its_texts(size: Size) -> None:
    names = {f"{kind}{role.key}" for role in ADVOCATES for kind in ("", "brief_", "no_brief_")}
    assert names <= set(texts(size))


def test_a_third_advocate_needs_a_row_and_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    third_advocate(monkeypatch)
    model = Script(
        {
            "customer": [answered("The critic's case.")],
            "support": [answered("The defender's case.")],
            "analyst": [answered("The analyst's case.")],
            "judge": [verdicts(polite="FALSE")],
        }
    )
    verdict = only(judged(model, engine="debate").verdicts)
    assert (verdict.value, verdict.sided_with, verdict.flags) == (False, "customer", ())
    prompt = model.prompt("judge")
    for line in ("critic| The critic's", "defender| The defender's", "analyst| The analyst's"):
        assert line in prompt
    assert "The text brief_analyst." in prompt
    assert "TRUE, that is, yes" in model.prompt("analyst")
