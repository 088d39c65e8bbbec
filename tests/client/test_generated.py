"""The committed client is what the generator makes of the API of now."""

import json
from pathlib import Path

import pytest
from drf_spectacular.generators import SchemaGenerator

from deploy.client import GENERATED, generate, selected

pytestmark = pytest.mark.sweep


def document() -> dict[str, object]:
    return dict(json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str)))


def files(folder: Path) -> dict[str, str]:
    found = [path for path in folder.rglob("*") if path.suffix in (".py", ".typed")]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}


def test_the_committed_client_is_that_of_the_api_of_now(tmp_path: Path) -> None:
    """If it is not: make client."""
    generate(document(), tmp_path / "generated")
    made, committed = files(tmp_path / "generated"), files(GENERATED)
    assert sorted(made) == sorted(committed)
    assert [name for name, text in made.items() if text != committed[name]] == []


def test_it_needs_nothing_but_httpx() -> None:
    """attrs and dateutil are what the generator would use."""
    imports = {line.split()[1].split(".")[0] for text in files(GENERATED).values() for line in lines_of(text)}
    known = {
        "__future__",
        "collections",
        "dataclasses",
        "datetime",
        "enum",
        "http",
        "typing",
        "urllib",
        "uuid",
    }
    assert imports - known == {"httpx", ""}


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("import ", "from "))]


def test_an_operation_that_the_api_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="has no operation run_sart"):
        selected(document(), ["run_start", "run_sart"])
