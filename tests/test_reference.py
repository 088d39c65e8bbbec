"""The reference says what the code says: commands, settings and API."""

import re
from pathlib import Path

import pytest

from docs_tools import llms
from docs_tools.reference import REFERENCE, Fact, pages, setting_facts, settings_page

FILES = ["command-options.md", "api-operations.md", "settings.md"]


@pytest.fixture(scope="module")
def made() -> dict[Path, str]:
    return pages()


@pytest.mark.parametrize("name", FILES)
def test_the_page_is_what_the_code_makes_now(name: str, made: dict[Path, str]) -> None:
    path = REFERENCE / name
    assert path.read_text("utf-8") == made[path], "run `make reference`"


@pytest.mark.parametrize("name", FILES)
def test_everything_listed_says_what_it_is(name: str, made: dict[Path, str]) -> None:
    """The meaning is the last cell, and that of an operation the second."""
    rows = [re.split(r" \| ", row) for row in re.findall(r"(?m)^\| (`.*) \|$", made[REFERENCE / name])]
    assert len(rows) > 40
    meanings = {row[0]: row[1 if name == "api-operations.md" else -1].strip(" |") for row in rows}
    assert [what for what, meaning in meanings.items() if not meaning] == []


def test_settings_are_found_however_they_are_read() -> None:
    assert {"DATABASE_URL", "LACE_SSO_CLIENT_SECRET", "OTEL_EXPORTER_OTLP_ENDPOINT"} <= set(setting_facts())


def test_kind_and_default_come_from_the_code_and_the_meaning_stays() -> None:
    rows = "| `OLD` | 1 | gone |\n| `KEPT` | 1 | a, [b](c.md) |\n"
    page = f"# S\n\n| variable | default | meaning |\n| --- | --- | --- |\n{rows}\nEnd.\n"
    made = settings_page(page, {"NEW": Fact("switch", "off"), "KEPT": Fact("number", "2")})
    assert made.splitlines()[4:] == [
        "| `KEPT` | number | `2` | a, [b](c.md) |",
        "| `NEW` | switch | `off` |  |",
        "",
        "End.",
    ]


def test_the_index_for_agents_follows_the_index_of_the_docs() -> None:
    assert llms.LLMS.read_text("utf-8") == llms.text(), "run `make reference`"
    links = re.findall(r"\]\(([^)]+)\)", llms.text())
    assert len(links) > 20 and all((llms.LLMS.parent / link).exists() for link in links)
