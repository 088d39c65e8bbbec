"""Reading writes nothing: every GET route, as each of the people and with a token."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from evaluation.models.prompts import PromptVersion
from labeling.people.services.tokens import token_create
from tests.cases import PEOPLE
from tests.routes import ROUTES, address, read_whole
from tests.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]

# Who read what, and that they are still there.
NOTED = ("labeling_auditevent", "django_session", "labeling_apitoken")
# Whether the database takes a write at all.
PROBE = {"/readyz": {"evaluation_workerheartbeat"}}
WRITES = re.compile(r"\s*(?:INSERT(?: OR \w+)?\s+INTO|REPLACE INTO|UPDATE|DELETE\s+FROM)\s+\"?(\w+)", re.I)


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


class Written:
    """Tables written to and, by the savepoint that would undo it, not rolled back again."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self._savepoints: list[tuple[str, int]] = []

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if found := WRITES.match(sql):
            self.tables.append(found[1])
        elif sql.startswith("SAVEPOINT"):
            self._savepoints.append((sql.split()[-1], len(self.tables)))
        elif sql.startswith("ROLLBACK TO SAVEPOINT"):
            place = max(at for name, at in self._savepoints if name == sql.split()[-1])
            del self.tables[place:]
        return answer


@contextmanager
def written() -> Iterator[Written]:
    found = Written()
    with connection.execute_wrapper(found):
        yield found


def reads() -> Iterator[tuple[str, Any]]:
    for name, cases in ROUTES.items():
        for case in cases:
            if case.method == "GET":
                yield name, case


def what_reading_writes(client: Client, world: World, headers: Mapping[str, str]) -> list[str]:
    """Every GET, as a page and as the fragment of one."""
    found = {}
    for url in dict.fromkeys(address(name, case, world.args) for name, case in reads()):
        for more in ({}, {"HX-Request": "true"}):
            with written() as tables:
                read_whole(client.get(url, headers={**headers, **more}))
            if others := sorted(set(tables.tables) - {*NOTED} - PROBE.get(url, set())):
                found[url] = ", ".join(others)
    return [f"{url} writes to {tables}" for url, tables in found.items()]


@pytest.mark.parametrize(
    "person", [pytest.param(one, marks=[] if one == "lead" else pytest.mark.heavy) for one in PEOPLE]
)
def test_whoever_reads_writes_nothing(world: World, person: str) -> None:
    found = what_reading_writes(world.client(person), world, {})
    assert not found, "\n".join(found)


@pytest.mark.heavy
def test_a_program_that_reads_writes_nothing(world: World) -> None:
    lead = world.users["lead"]
    scopes = sorted(one.removeprefix("labeling.") for one in lead.get_all_permissions())
    scopes = [one for one in scopes if one in {"see_judge", "see_holdout", "manage_labeling", "start_runs"}]
    token = token_create(user=lead, name="some", scopes=scopes, days=1).secret
    found = what_reading_writes(Client(), world, {"Authorization": f"Token {token}"})
    assert not found, "\n".join(found)


def test_what_is_written_is_seen_and_what_is_rolled_back_is_not(world: World) -> None:
    prompts = PromptVersion.objects.all()
    with written() as found:
        with transaction.atomic():
            prompts.update(reason="Rolled back.")
            transaction.set_rollback(True)
        prompts.update(reason="Kept.")
    assert found.tables == ["evaluation_promptversion"]
