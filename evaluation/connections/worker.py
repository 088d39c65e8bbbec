"""Tests the connection to an endpoint: lists its models and asks each chosen one a short question."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

import httpx2
from django.db import transaction
from django.utils import timezone

from evaluation.core.types import ModelAt
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.queries import profiles_at
from evaluation.endpoints.services import model_learn
from evaluation.gateway.client import COMPLETIONS, NO_REPLY, EndpointClient, no_reply
from evaluation.gateway.current import connected
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.refusals import key_hidden, lesson
from evaluation.gateway.replies import Outcome, read_reply
from evaluation.models.endpoints import ConnectedEndpoint
from labeling.models.people import User

LIST_SECONDS, ANSWER_SECONDS = 10.0, 25.0
MOST_MODELS = 5  # asked in one test
MOST_FOUND = 300  # names kept of a list
MOST_REWRITTEN = 3
LONGEST_ERROR = 2000  # characters of an endpoint's own words
QUESTION = "Reply with the single word: ready"
# A model that reasons needs room for its thoughts, too.
ANSWER_TOKENS = 64
MODEL_LIST = "Model list"


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a test. `error` is the endpoint's own text, without the key; `advice` what to do."""

    what: str
    ok: bool
    ms: int
    error: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionTest:
    """The result: each step, and the models that the endpoint lists."""

    steps: tuple[Step, ...]
    found: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether every chosen model answers; without one, whether the endpoint lists its models."""
        asked = [step for step in self.steps if step.what != MODEL_LIST]
        return all(step.ok for step in asked or self.steps)

    @property
    def error(self) -> str:
        """Return the first error that matters; "" without one."""
        return "" if self.ok else next(one.error for one in reversed(self.steps) if not one.ok)

    def as_json(self) -> dict[str, Any]:
        """Return the result as the endpoint's row keeps it."""
        return {
            "ok": self.ok,
            "error": self.error,
            "steps": [asdict(step) for step in self.steps],
            "found": list(self.found),
        }


def endpoint_test(*, endpoint: ConnectedEndpoint, by: User | None) -> ConnectionTest:
    """Test a connected endpoint now and keep the result with it. Raises KeyUnreadable.

    Sends real requests: one for the model list, and a short question to each of the first MOST_MODELS models.
    """
    target = connected(endpoint)
    models = [ModelAt(target.id, model) for model in target.models[:MOST_MODELS]]
    learned: dict[ModelAt, dict[str, Any]] = {}
    result = asyncio.run(_test(target, models, profiles_at(models), learned))
    with transaction.atomic():
        for at, changes in learned.items():
            model_learn(endpoint=at.endpoint, model=at.model, changes=changes)
        row = ConnectedEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        row.test, row.tested_at, row.tested_by = result.as_json(), timezone.now(), by
        row.save(update_fields=["test", "tested_at", "tested_by"])
    return result


async def _test(
    endpoint: Endpoint,
    models: Sequence[ModelAt],
    profiles: Mapping[ModelAt, ModelProfile],
    learned: dict[ModelAt, dict[str, Any]],
) -> ConnectionTest:
    async with EndpointClient(endpoint, max_connections=MOST_MODELS) as client:
        listed, found = await _list(client)
        asked = [_ask(client, at, profiles.get(at) or ModelProfile(), found, learned) for at in models]
        answers = await asyncio.gather(*asked)
    return ConnectionTest((listed, *answers), found)


async def _list(client: EndpointClient) -> tuple[Step, tuple[str, ...]]:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            response = await client.request("GET", "/models", timeout=LIST_SECONDS)
    except (*NO_REPLY, TimeoutError) as error:
        return _unanswered(client, MODEL_LIST, error, LIST_SECONDS, started), ()
    if response.status_code != 200:
        return _refused(client, MODEL_LIST, response, started), ()
    found = _names(response)
    if not found:
        words = _body(client, response) or "an empty reply"
        advice = "The reply is no list of models. Check the base URL: most end with /v1."
        return Step(MODEL_LIST, False, _ms(started), words, advice), ()
    return Step(MODEL_LIST, True, _ms(started)), found


async def _ask(
    client: EndpointClient,
    at: ModelAt,
    profile: ModelProfile,
    found: tuple[str, ...],
    learned: dict[ModelAt, dict[str, Any]],
) -> Step:
    """Ask one model; what it refuses is left out of the next try and remembered in `learned`."""
    for _ in range(MOST_REWRITTEN):
        started = time.perf_counter()
        body = _question(at, profile)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await client.request(
                    "POST", COMPLETIONS, timeout=ANSWER_SECONDS, content=_json(body)
                )
        except (*NO_REPLY, TimeoutError) as error:
            return _unanswered(client, at.model, error, ANSWER_SECONDS, started)
        outcome = _read(client, response)
        if outcome.status == 200 and outcome.kind in ("answered", "cut_off", "empty"):
            return Step(at.model, True, _ms(started))
        changes = lesson(outcome.refusal, body=body, profile=profile)
        if outcome.kind != "bad_request" or not changes:
            break
        profile = profile.learn(changes)
        learned[at] = learned.get(at, {}) | changes
    step = _refused(client, at.model, response, started)
    if found and at.model not in found and outcome.status == 404:
        shown = ", ".join(found[:3])
        return Step(step.what, False, step.ms, step.error, f"Choose a model that it lists, such as {shown}.")
    return step


def _question(at: ModelAt, profile: ModelProfile) -> dict[str, Any]:
    room = profile.thinking_room(None)
    body: dict[str, Any] = {
        "model": at.model,
        "messages": [{"role": "user", "content": QUESTION}],
        profile.token_limit: ANSWER_TOKENS + room,
    }
    return body | dict(profile.extra)


def _json(body: Mapping[str, Any]) -> bytes:
    return httpx2.Request("POST", "http://x", json=dict(body)).content


def _read(client: EndpointClient, response: httpx2.Response) -> Outcome:
    return read_reply(
        status=response.status_code,
        headers=response.headers,
        content=response.content,
        secret=client.endpoint.api_key,
    )


def _names(response: httpx2.Response) -> tuple[str, ...]:
    """Return the ids of a list of models, sorted; empty for anything else."""
    try:
        data = response.json()
    except (ValueError, RecursionError):
        return ()
    rows = data.get("data") if isinstance(data, dict) else None
    ids = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    names = {one for one in ids if isinstance(one, str) and 0 < len(one) <= 200 and "\0" not in one}
    return tuple(sorted(names)[:MOST_FOUND])


def _refused(client: EndpointClient, what: str, response: httpx2.Response, started: float) -> Step:
    status = response.status_code
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else ""
    words = f"HTTP {status} {phrase}".strip()
    if 300 <= status < 400:
        to = key_hidden(response.headers.get("location", ""), client.endpoint.api_key)[:LONGEST_ERROR]
        words = f"{words}: redirects to {to or 'another address'}"
    elif body := _body(client, response):
        words = f"{words}: {body}"
    return Step(what, False, _ms(started), words, _advice(_read(client, response), what))


def _unanswered(
    client: EndpointClient, what: str, error: BaseException, seconds: float, started: float
) -> Step:
    outcome = no_reply(error, seconds)
    words = key_hidden(str(_innermost(error)), client.endpoint.api_key)[:LONGEST_ERROR]
    if isinstance(error, TimeoutError):
        words = outcome.error
    return Step(what, False, _ms(started), words or outcome.error, _advice(outcome, what))


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _body(client: EndpointClient, response: httpx2.Response) -> str:
    text = response.content.decode(errors="replace").replace("\0", "\ufffd")
    return key_hidden(text.strip(), client.endpoint.api_key)[:LONGEST_ERROR]


def _ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


_ADVICE = {
    "auth": "The key is not accepted, or the account has no credit. Replace the key, or look at the account.",
    "rate_limited": "Wait a minute and test again. Enter lower limits if this comes back.",
    "server_error": "The endpoint itself failed. Test again later, or ask who runs it.",
    "timeout": "The endpoint is slow or loads the model. Test again in a minute.",
    "connection": "Check that the server runs, and that host and port of the base URL are right.",
    "not_json": "The reply is no JSON. Check the base URL: most end with /v1.",
    "too_big": "The reply is too large to be an answer. Check the base URL.",
    "bad_request": "Correct what the endpoint names, or choose another model.",
    "refused": "The endpoint's content filter refused a harmless question. Look at its settings.",
}


def _advice(outcome: Outcome, what: str) -> str:
    if outcome.kind == "redirect" and outcome.status is None:
        return (
            "Addresses in private networks need the consent of the operator of this server. "
            "Ask them to allow the network, or enter a public address."
        )
    if outcome.kind == "redirect":
        return "Redirects are not followed. Enter the address that it leads to as the base URL."
    if outcome.status in (404, 405) and what == MODEL_LIST:
        return "Check the base URL: most end with /v1. Some endpoints have no list; then the models decide."
    if outcome.status == 404:
        return "Check the model's name, and the base URL: most end with /v1."
    return _ADVICE.get(outcome.kind, "Look at the endpoint's own documentation for this error.")
