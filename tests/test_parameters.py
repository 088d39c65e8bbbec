"""Whatever a query parameter holds, no page and no API route fails: no GET is a 500.

The names of the parameters are those that the code of a route reads while it answers, so a new route is
included by itself.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import QueryDict
from django.test import Client

from tests.cases import Case
from tests.routes import ROUTES, address, read_whole
from tests.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]

VALUES: dict[str, Any] = {
    "word": "no-such-thing",
    "number": "1",
    "slash": "a/b",
    "nul": "a\0b",
    "huge": "9" * 400,
    "beyond the database": str(2**63),
    "long": "x" * 10_000,
    "repeated": ["1", "a/b", ""],
    "markup": "<script>\"'</script>{{ x }}%00",
    "negative": "-1",
    "fraction": "1e400",
    "day": "2026-02-31",
    "surrogate": "\udcff\U0001f600",
    "empty": "",
}
SERVER_ERROR = 500
Trial = tuple[str, str]  # a parameter, and the name of its value


class Names(dict[str, Any]):
    """The values of a query string as a dict; notes the names that the code asks for."""

    def __init__(self, values: Any, read: set[str]) -> None:
        super().__init__(values)
        self._read = read

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._read.add(str(key))
        return super().__contains__(key)


class Query(QueryDict):
    """A query string that notes the names that the code asks for, and whether it loops over all."""

    looped = False

    @cached_property
    def read(self) -> set[str]:
        return set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def getlist(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().getlist(key, default)

    def items(self) -> Any:
        self.looped = True
        return super().items()

    def dict(self) -> Any:
        return Names(zip(self, super().values(), strict=True), self.read)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The query strings of all requests so far."""
    found: list[Query] = []

    def query_of(request: WSGIRequest) -> Query:
        if "query" not in request.__dict__:
            query = cast(Query, Query(request.META.get("QUERY_STRING", ""), encoding=request.encoding))
            query.read.clear()  # its own names, which it looked up while it was made
            query.looped = False
            request.__dict__["query"] = query
            found.append(query)
        known: Query = request.__dict__["query"]
        return known

    monkeypatch.setattr(WSGIRequest, "GET", property(query_of))
    return found


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


def reads() -> Iterator[tuple[str, Case]]:
    """Each route with a GET that somebody may use: the first of its rows."""
    for name, cases in ROUTES.items():
        case = next((one for one in cases if one.method == "GET" and one.may), None)
        if case is not None and name != "account_logout":
            yield name, case


def client_of(world: World, case: Case, clients: dict[str, Client]) -> Client:
    person = "lead" if case.allows("lead") else case.may[0]
    if person not in clients:
        clients[person] = world.client(person)
        clients[person].raise_request_exception = False
    return clients[person]


def with_value(url: str, name: str, value: Any) -> str:
    """The address with this value for the parameter, in place of the one that it may have."""
    path, _, query = url.partition("?")
    values = QueryDict(query, mutable=True)
    values.setlist(name, value if isinstance(value, list) else [value])
    pairs = [(key, one) for key, some in values.lists() for one in some]
    return f"{path}?{urlencode(pairs, errors='surrogatepass')}"


def names_of(queries: list[Query], others: Iterable[str]) -> set[str]:
    """The parameters that these requests read; `others` too if one loops over what there is."""
    found = {name for query in queries for name in query.read}
    return found | set(others) if any(query.looped for query in queries) else found


def failures(world: World, queries: list[Query], share: Callable[[str, list[str]], list[Trial]]) -> list[str]:
    """Every route with the trials that `share(route, names)` chooses among its parameters.

    A parameter that is read because of another one's value is tried in the next round.
    """
    clients: dict[str, Client] = {}
    failed, known = [], {"criterion", "page", "set", "split"}
    for route, case in reads():
        client, url = client_of(world, case, clients), address(route, case, world.args)
        start, tried = len(queries), set[str]()
        read_whole(client.get(url))
        while left := sorted(names_of(queries[start:], known) - tried):
            tried |= {*left}
            for name, value in share(route, left):
                answer = read_whole(client.get(with_value(url, name, VALUES[value])))
                if answer.status_code >= SERVER_ERROR:
                    failed.append(f"{route}: {name} = {value}: {answer.status_code}")
        known |= tried
    assert {"page", "criterion", "against", "since", "cursor"} <= known, known
    return failed


def test_no_parameter_is_a_server_error(world: World, queries: list[Query]) -> None:
    """A parameter and a value of each route, chosen by its name; `make test-all` tries all of them."""

    def one(route: str, names: list[str]) -> list[Trial]:
        number = zlib.crc32(route.encode())
        return [(names[number % len(names)], [*VALUES][number % len(VALUES)])]

    failed = failures(world, queries, one)
    assert not failed, "\n".join(failed)


@pytest.mark.heavy
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("value", VALUES)
def test_no_value_of_any_parameter_is_a_server_error(world: World, queries: list[Query], value: str) -> None:
    failed = failures(world, queries, lambda _, names: [(name, value) for name in names])
    assert not failed, "\n".join(failed)


def test_an_unknown_criterion_opens_the_form_of_a_test_without_one(world: World) -> None:
    answer = world.client("lead").get("/regressions/new/?criterion=a/b")
    assert answer.status_code == 200
    assert "a/b" not in answer.content.decode()


def test_a_chat_beyond_the_database_is_no_chat_to_try(world: World) -> None:
    client, huge = world.client("lead"), VALUES["huge"]
    for page in ("preview/?chat", "tries/estimate/?chats"):
        assert client.get(f"/criteria/polite/prompt/{page}={huge}").status_code == 200
