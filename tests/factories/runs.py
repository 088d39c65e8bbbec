"""Whole runs for tests: small workspaces, and `evaluate` as from the shell against a stub endpoint."""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.core.management import get_commands, load_command_class
from django.db import connection
from pytest_django import Settings

from evaluation.models.runs import Attempt, ModelCall, Run, Verdict
from labeling.models.chats import Chat, ChatSet
from labeling.models.rubric import Rubric
from tests.factories.rows import make_chat, make_rubric, make_set
from tests.stub_endpoint import Answer, Body, StubEndpoint, StubReply, asked_keys, asked_schema

KEY = "sk-canary-93ab41"
MODEL = "judge-model"
TRUE: dict[bool | None, str] = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, what it printed, and its JSON answer ({} without one)."""

    code: int
    out: str
    err: str
    answer: dict[str, Any]

    @property
    def error(self) -> str:
        """The one line that says what went wrong."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        return lines[0]


def evaluate(*args: str) -> Ended:
    """`manage.py evaluate … --json`."""
    return command("evaluate", *args)


def command(name: str, *args: str) -> Ended:
    """`manage.py NAME … --json` in this process, with the exit code that a shell would see."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            load_command_class(get_commands()[name], name).run_from_argv(["manage.py", name, *args, "--json"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ended(code, out.getvalue(), err.getvalue(), json.loads(out.getvalue() or "{}"))


def chats_of(count: int, *, text: str = "Where is my order?") -> list[Chat]:
    """Chats that a planted judge can tell apart by `case c<number>`."""
    return [
        make_chat(f"c{n}", messages=[("user", f"In case c{n}: {text}"), ("assistant", "It is on its way.")])
        for n in range(count)
    ]


def workspace(*keys: str, chats: int = 3, name: str = "calibration", **criterion: Any) -> ChatSet:
    """A rubric of these criteria and a set of numbered chats."""
    return make_set(rubric_of(*keys, **criterion), *chats_of(chats), name=name)


def rubric_of(*keys: str, **criterion: Any) -> Rubric:
    return make_rubric(*keys or ("polite",), **criterion)


@contextmanager
def answering(
    settings: Settings, answer: Answer, *, prices: str = "", key: str = KEY
) -> Iterator[StubEndpoint]:
    """A stub endpoint that the settings name; `stub.answer` may be changed on the way."""
    with StubEndpoint(answer) as stub:
        point_at(settings, stub.base_url, prices=prices, key=key)
        yield stub


def point_at(settings: Settings, base_url: str, *, prices: str = "", key: str = KEY) -> None:
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = base_url, key
    settings.LACE_REASONING_MODEL, settings.LACE_FORMATTER_MODEL = MODEL, ""
    settings.LACE_PRICES, settings.LACE_MAX_IN_FLIGHT = prices, 4
    settings.LACE_REQUEST_TIMEOUT = 20


def block(values: Mapping[str, bool | None], *, prose: str = "What the messages show.") -> StubReply:
    """An answer that ends as a reasoning answer should."""
    lines = "\n".join(f"{key}: {TRUE[value]}" for key, value in values.items())
    return StubReply(f"{prose}\n\nVERDICTS\n{lines}")


def always(value: bool | None) -> Answer:
    """A judge that gives every criterion the same answer, and argues for any side."""
    return lambda body: block(dict.fromkeys(asked_keys(body), value))


def by_role(*, reasoning: Callable[[Body], StubReply], formatter: Callable[[Body], StubReply]) -> Answer:
    """Reasoning requests and formatter requests (those with a schema) answered apart."""
    return lambda body: reasoning(body) if asked_schema(body) is None else formatter(body)


def formatted(values: Mapping[str, str]) -> StubReply:
    """What a formatter answers."""
    entries = {key: {"explanation": "as it says", "value": value} for key, value in values.items()}
    return StubReply(json.dumps({"verdicts": entries}))


def the_run() -> Run:
    """The newest run."""
    return Run.objects.select_related("judge").latest("id")


def verdicts_of(run: Run) -> dict[tuple[str, str], tuple[str, bool | None]]:
    """State and value by (chat, criterion)."""
    rows = Verdict.objects.filter(run=run).select_related("chat", "criterion")
    return {(row.chat.external_id, row.criterion.key): (row.state, row.value) for row in rows}


def outcomes() -> list[str]:
    """The outcome of every attempt, oldest first."""
    return list(Attempt.objects.order_by("id").values_list("outcome", flat=True))


def calls_by_role() -> dict[str, int]:
    roles = list(ModelCall.objects.values_list("role", flat=True))
    return {role: roles.count(role) for role in sorted(set(roles))}


def database_url() -> str:
    """The address of this test session's database, for a process of its own."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def environment(base_url: str, **more: str) -> dict[str, str]:
    """The environment of a process that works on this test's database with a stub endpoint."""
    chosen = {
        "DATABASE_URL": database_url(),
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": KEY,
        "LACE_REASONING_MODEL": MODEL,
        "LACE_FORMATTER_MODEL": "",
        "LACE_PRICES": "",
        "LACE_MAX_IN_FLIGHT": "4",
        "DJANGO_SETTINGS_MODULE": "lace_site.settings",
    }
    return os.environ | chosen | more
