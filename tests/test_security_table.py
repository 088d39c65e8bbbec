"""The table of docs/security.md is whole: each requirement has a row, and each test that it names exists."""

import ast
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx2
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.utils.module_loading import import_string
from pytest_django import Settings

from labeling.people.services.password_hash import Argon2id
from tests.factories.rows import make_user

ROOT: Path = django_settings.BASE_DIR
PAGE = ROOT / "docs" / "security.md"
MARKS = {"✓", "operator", "–", "open"}
# The requirements of OWASP ASVS 5.0.0: for each section the level of its requirements, in their order.
LEVELS = {
    **{"1.1": "22", "1.2": "1111122223", "1.3": "112222222223", "1.4": "222", "1.5": "123"},
    **{"2.1": "122", "2.2": "112", "2.3": "12223", "2.4": "23"},
    **{"3.1": "3", "3.2": "113", "3.3": "12223", "3.4": "11222233", "3.5": "11122333", "3.6": "3"},
    **{"3.7": "22333"},
    **{"4.1": "12233", "4.2": "23333", "4.3": "22", "4.4": "1222"},
    **{"5.1": "2", "5.2": "112333", "5.3": "113", "5.4": "222"},
    **{"6.1": "122", "6.2": "111111112222", "6.3": "11223333", "6.4": "112233", "6.5": "22222333"},
    **{"6.6": "2223", "6.7": "33", "6.8": "2222"},
    **{"7.1": "222", "7.2": "1111", "7.3": "22", "7.4": "11222", "7.5": "223", "7.6": "22"},
    **{"8.1": "1233", "8.2": "1123", "8.3": "133", "8.4": "23"},
    **{"9.1": "111", "9.2": "1222"},
    **{"10.1": "22", "10.2": "223", "10.3": "22223", "10.4": "1111122222233333", "10.5": "22222"},
    **{"10.6": "22", "10.7": "222"},
    **{"11.1": "2233", "11.2": "22233", "11.3": "11233", "11.4": "1222", "11.5": "23", "11.6": "23"},
    **{"11.7": "33"},
    **{"12.1": "12233", "12.2": "11", "12.3": "22223"},
    **{"13.1": "2333", "13.2": "222223", "13.3": "2233", "13.4": "1222233"},
    **{"14.1": "22", "14.2": "12223333", "14.3": "122"},
    **{"15.1": "12233", "15.2": "12233", "15.3": "1222222", "15.4": "3333"},
    **{"16.1": "2", "16.2": "22222", "16.3": "2222", "16.4": "222", "16.5": "2223"},
    **{"17.1": "23", "17.2": "22223333", "17.3": "22"},
}


@dataclass(frozen=True)
class Row:
    """A row of the table: its requirements, how they are met, and by which test."""

    ids: tuple[str, ...]
    levels: set[str]
    mark: str
    how: str
    test: str


def level(requirement: str) -> str:
    section, _, number = requirement.rpartition(".")
    return LEVELS[section][int(number) - 1]


def rows() -> list[Row]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.match(r"\d+\.\d+\.\d+", cells[0]):
            ids, levels, mark, how, test = cells
            found.append(Row(tuple(each(ids)), set(levels.split(", ")), mark, how, test.strip("`")))
    return found


def each(ids: str) -> Iterator[str]:
    """The requirements of a cell: `1.4.1–1.4.3, 1.5.1`."""
    for part in ids.split(", "):
        first, _, last = part.partition("–")
        section, _, number = first.rpartition(".")
        end = int(last.rpartition(".")[2]) if last else int(number)
        yield from (f"{section}.{one}" for one in range(int(number), end + 1))


@cache
def names_of_tests(file: str) -> frozenset[str]:
    path = ROOT / "tests" / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_the_levels_are_those_of_the_standard() -> None:
    counts = {one: sum(text.count(one) for text in LEVELS.values()) for one in "123"}
    assert counts == {"1": 70, "2": 183, "3": 92}


def test_every_requirement_of_levels_1_and_2_has_one_row() -> None:
    listed = [one for row in rows() for one in row.ids]
    assert len(listed) == len(set(listed)), "a requirement has two rows"
    wanted = {
        f"{section}.{number}"
        for section, text in LEVELS.items()
        for number, one in enumerate(text, start=1)
        if one in "12"
    }
    assert wanted - set(listed) == set()
    assert all(row.levels == {level(one) for one in row.ids} for row in rows()), [
        row.ids for row in rows() if row.levels != {level(one) for one in row.ids}
    ]


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for row in rows():
        file, _, name = row.test.partition("::")
        if row.test and not (names_of_tests(file) if name == "*" else name in names_of_tests(file)):
            missing.append(row.test)
    assert missing == []


def test_what_is_met_names_its_test_and_what_is_not_its_reason() -> None:
    for row in rows():
        assert row.mark in MARKS and row.how, row.ids
        assert bool(row.test) == (row.mark == "✓"), row.ids


def test_no_requirement_of_level_1_is_open() -> None:
    assert [row.ids for row in rows() if row.mark == "open" and "1" in row.levels] == []


def test_every_key_is_in_the_inventory() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Keys")[1].split("## Connections")[0]
    source = (ROOT / "lace_site" / "settings.py").read_text(encoding="utf-8")
    source += (ROOT / "lace_site" / "environment.py").read_text(encoding="utf-8")
    named = set(re.findall(r'"([A-Z_]*(?:SECRET|KEY|KEYS|TOKEN))"', source)) - {"LACE_NAMES_KEY"}
    assert {"SECRET_KEY", "OPENAI_API_KEY"} <= named
    assert {name for name in named if name not in text} == set()


def test_every_class_of_data_says_how_it_is_protected() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## Data")[1].split("## Updates")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(lines) >= 6
    assert all(all(cell.strip() for cell in line.strip("|").split("|")) for line in lines)


def test_passwords_are_hashed_slowly() -> None:
    own = import_string("lace_site.settings.PASSWORD_HASHERS")
    assert own[0] == "labeling.people.services.password_hash.Argon2id"
    stored = Argon2id().encode("correct horse battery", "a salt of 22 letters..")
    # At least what OWASP's cheat sheet on password storage asks for: m=19456 (19 MiB), t=2, p=1.
    assert stored.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
    assert Argon2id().verify("correct horse battery", stored)


@pytest.mark.django_db
def test_a_hash_of_an_earlier_version_is_renewed_at_the_next_sign_in(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = import_string("lace_site.settings.PASSWORD_HASHERS")
    user = make_user("ada")
    user.password = PBKDF2PasswordHasher().encode("correct horse battery", "salt", iterations=1000)
    user.save()
    assert user.check_password("correct horse battery")
    user.refresh_from_db()
    assert user.password.startswith("argon2$")
    assert user.check_password("correct horse battery")


def test_outgoing_connections_verify_certificates() -> None:
    context = httpx2.create_ssl_context(trust_env=False)
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    if context.minimum_version == ssl.TLSVersion.MINIMUM_SUPPORTED:
        # Debian's Python leaves it to OpenSSL 3, which refuses older ones from security level 1 on.
        assert ssl.OPENSSL_VERSION_INFO >= (3,) and context.security_level >= 1
    else:
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_short_version_links_to_it() -> None:
    assert "docs/security.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
