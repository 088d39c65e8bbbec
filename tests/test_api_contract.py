"""What programs rely on: an answer is one that the OpenAPI document has, and a generated client reads it.

Every operation of the document is tried, so that a new route is tried by itself.
"""

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_python_client.strings import PythonIdentifier
from schemathesis.specs.openapi import checks

from labeling.models.chats import Chat
from tests.world import World, make_world, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep, pytest.mark.heavy]

SITE = "http://testserver"
EXAMPLES = 10  # of each operation, valid and invalid
# NB: not `positive_data_acceptance`: a body of the right shape may name a chat that is not there.
WANTED = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


@cache
def document() -> str:
    return json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str)


def paths() -> dict[str, Any]:
    return dict(json.loads(document())["paths"])


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def lead(untouched: World) -> Client:
    return untouched.client("lead")


def site(client: Client) -> httpx.MockTransport:
    """The site as httpx calls it; what a call writes is undone."""

    def answer(request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        kind = request.headers.get("Content-Type", "application/json")
        with rolled_back():
            found = client.generic(request.method, target, request.read(), content_type=kind)
            content = b"".join(found) if found.streaming else found.content
        response = httpx.Response(found.status_code, headers=dict(found.items()), content=content)
        response.elapsed = timedelta()  # which httpx leaves out where nothing is streamed
        return response

    return httpx.MockTransport(answer)


# ---------- generated input ----------


@pytest.mark.parametrize("path", sorted(paths()))
def test_generated_input_brings_only_answers_that_the_document_has(
    path: str, untouched: World, lead: Client
) -> None:
    whole = json.loads(document())
    whole["paths"] = {path: with_rows(path, whole["paths"][path], untouched)}
    program = httpx.Client(transport=site(lead))
    operations: Any = schemathesis.openapi.from_dict(whole).get_all_operations()
    for operation in (one.ok() for one in operations):

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def answers(case: Any) -> None:
            call: Any = requests.Request(**case.as_transport_kwargs(base_url=SITE)).prepare()
            request = httpx.Request(call.method, call.url, headers=dict(call.headers), content=call.body)
            case.validate_response(program.send(request), checks=WANTED)

        answers()


def with_rows(path: str, operations: dict[str, Any], world: World) -> dict[str, Any]:
    """The operations with arguments that name a row of the world."""
    for operation in operations.values():
        for one in operation.get("parameters", ()):
            if one["in"] == "path":
                one["schema"]["enum"] = [value_of(one["name"], path, world)]
    return operations


def value_of(name: str, path: str, world: World) -> Any:
    """A row of the world for an argument of an address."""
    return world.args["try_id" if path.startswith("/api/tries/") else name]


# ---------- a generated client ----------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a package that openapi-python-client made of the document."""
    folder = tmp_path_factory.mktemp("client")
    source = folder / "openapi.json"
    source.write_text(document(), encoding="utf-8")
    package = folder / "generated_client"
    # JSON Lines are text to it.
    chosen = ConfigFile(post_hooks=[], content_type_overrides={"application/x-ndjson": "text/plain"})
    config = Config.from_sources(chosen, MetaType.NONE, source, "utf-8", False, package)
    assert [str(one) for one in generate(config=config)] == []
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield package.name


NOTHING_YET = {"prompt_draft"}  # nobody in the world has a draft


def test_a_generated_client_reads_the_answer_to_every_get(package: str, untouched: World) -> None:
    folder = Path(str(importlib.import_module(package).__file__)).parent / "api"
    unread = []
    for path, operations in paths().items():
        if "get" not in operations:
            continue
        name = operations["get"]["operationId"]
        (file,) = folder.rglob(f"{PythonIdentifier(name, '')}.py")
        module = importlib.import_module(f"{package}.api.{file.parent.name}.{file.stem}")
        answers = [read_by(person, module, path, untouched) for person in ("lead", "rater")]
        read = any(status == 200 and (parsed or file_name(path)) for status, parsed in answers)
        if read == (name in NOTHING_YET):
            unread.append(f"{path}: {answers}")
    assert not unread, "\n".join(unread)


def read_by(person: str, module: ModuleType, path: str, world: World) -> tuple[int, bool]:
    """The status of the answer to a person, and whether the client made an object of it."""
    package = importlib.import_module(module.__name__.partition(".")[0])
    client = package.AuthenticatedClient(
        base_url=SITE,
        token="unused",
        raise_on_unexpected_status=True,
        httpx_args={"transport": site(world.client(person))},
    )
    parameters = inspect.signature(module.sync_detailed).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty and one.name != "client"]
    asked = asked_of(path, world)
    args = asked | {name: value_of(name, path, world) for name in needed if name not in asked}
    answer = module.sync_detailed(client=client, **args)
    return answer.status_code, answer.parsed is not None


def asked_of(path: str, world: World) -> dict[str, str]:
    """What the query of an address has to name."""
    if path == "/api/personal-data/chat/":
        return {"chat": Chat.objects.get(pk=world.args["chat_id"]).external_id}
    return {"user": world.users["lead"].username} if path == "/api/personal-data/person/" else {}


def file_name(path: str) -> bool:
    """Whether the address is of a file, whose text is the answer."""
    return "." in path or path.endswith("/export/")
