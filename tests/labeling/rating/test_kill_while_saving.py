"""kill -9 of the web server while raters save: every answer that got its 2xx is there after the restart."""

import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.db import connection, connections

from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from lace_site.management.commands.serve import web_command
from lace_site.settings import site_name
from tests.factories.api_calls import label_url, signed_in
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.runs import environment

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERED = 100  # saves before the kill
RATERS = 8
KEYS = ("polite", "correct")
TOKEN = "a" * 32  # the CSRF cookie and its header; any equal pair will do


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The web server of `serve` as processes of their own on this test's database; its address."""
    connections.close_all()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = web_command(f"127.0.0.1:{port}")
    child = subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        env=environment(url),
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_answering(f"{url}/healthz")
        yield url, child
    finally:
        kill(child)


def kill(child: subprocess.Popen[bytes]) -> None:
    """kill -9 of the server and its workers, whose group this is."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(timeout=30)


def wait_until_answering(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"no answer from {url}")


@dataclass
class Sent:
    """The saves that were sent and those that were answered with a 2xx, by client_id."""

    sent: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


def browser(url: str, rater: Rater) -> httpx2.Client:
    session = signed_in(user_of(rater)).cookies[settings.SESSION_COOKIE_NAME].value
    site = site_name(connection.settings_dict)  # the server names its cookies after the database it opens
    cookies = {f"sessionid_{site}": session, f"csrftoken_{site}": TOKEN}
    return httpx2.Client(base_url=url, cookies=cookies, headers={"X-CSRFToken": TOKEN}, timeout=30)


def save_until_cut_off(client: httpx2.Client, assignment: Assignment, log: Sent) -> None:
    """One answer after the other, until the server is gone."""
    number = 0
    while True:
        client_id, url = str(uuid.uuid4()), label_url(assignment, KEYS[number % len(KEYS)])
        body = {"client_id": client_id, "value": number % 2 == 0, "active_ms": 10}
        log.sent[client_id] = url, body
        try:
            answer = client.put(url, json=body)
        except httpx2.TransportError:
            return
        if answer.is_success:
            with log.lock:
                log.answered[client_id] = answer.json()["revision"]
        number += 1


@pytest.mark.flow
@pytest.mark.heavy
def test_every_answered_save_is_there_after_kill_9_and_a_restart() -> None:
    desk = make_desk(chats=RATERS, raters=RATERS, keys=KEYS)
    taken = [desk.taken(rater) for rater in desk.raters]
    log = Sent()
    with serving() as (url, child), ThreadPoolExecutor(RATERS) as pool:
        clients = [browser(url, rater) for rater in desk.raters]
        connections.close_all()
        for client, assignment in zip(clients, taken, strict=True):
            pool.submit(save_until_cut_off, client, assignment, log)
        deadline = time.monotonic() + 120
        while len(log.answered) < ANSWERED and time.monotonic() < deadline:
            time.sleep(0.01)
        kill(child)
    assert len(log.answered) >= ANSWERED
    with serving() as (url, _):
        stored = {
            str(client_id): number
            for client_id, number in LabelRevision.objects.values_list("client_id", "number")
        }
        lost = log.answered.keys() - stored.keys()
        assert lost == set()
        assert {client_id: stored[client_id] for client_id in log.answered} == log.answered
        resend(url, desk, taken, log)
    assert {str(row) for row in LabelRevision.objects.values_list("client_id", flat=True)} == set(log.sent)
    for label in Label.objects.all():
        numbers = LabelRevision.objects.filter(label=label).values_list("number", flat=True)
        assert sorted(numbers) == list(range(1, label.revision + 1))


def resend(url: str, desk: Desk, taken: list[Assignment], log: Sent) -> None:
    """What got no answer is sent again by its rater, as a browser does: it is saved once, or was."""
    for rater, assignment in zip(desk.raters, taken, strict=True):
        with browser(url, rater) as client:
            for client_id, (where, body) in log.sent.items():
                if client_id not in log.answered and f"/{assignment.pk}/" in where:
                    assert client.put(where, json=body).status_code == 200
