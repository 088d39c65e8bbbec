"""Chats over HTTP: 1,000,000 in packed requests of 5,000 to two web servers; their memory must stay flat."""

import gzip
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx2
import psutil
from django.conf import settings
from django.core.management import call_command

from bench import Figure
from bench._child import in_child
from labeling.models.chats import Chat, ChatWords
from labeling.models.ingest import ChatSource, IngestSettings
from labeling.models.people import Role
from labeling.people.services.tokens import token_create
from lace_site.management.commands.serve import HOST, web_command
from tests.factories.rows import make_user
from tests.with_postgres import postgres

CHATS = int(os.environ.get("LACE_BENCH_CHATS", "1000000"))
REDACTED = CHATS // 5
EACH = 5_000
SENDERS = WEB_SERVERS = 2
WARM = 20  # requests until every thread of the servers has had some
LEAST_PER_SECOND = 2_000.0
GROWTH_MB = 50.0  # from the warm servers to the last request


def figures() -> Iterator[Figure]:
    """Chats per second on PostgreSQL, with and without redaction, and how far the memory grows."""
    for name, chats, redact in (("plain", CHATS, []), ("redacted", REDACTED, ["email", "phone", "card"])):
        with postgres() as url:
            found = in_child("ingest", "sent", {"chats": chats, "redact": redact}, {"DATABASE_URL": url})
        title = f"{chats:,} chats, {name}"
        yield Figure(title, found["rate"], LEAST_PER_SECOND, "chats/s", floor=True)
        for what in ("servers", "sender"):
            yield Figure(f"{title}, growth of the {what}", found[what], GROWTH_MB, "MB")


def sent(chats: int, redact: list[str]) -> dict[str, float]:
    """Send all chats with one token, by two senders; memory in MB."""
    call_command("migrate", verbosity=0)
    IngestSettings.objects.create(redact=redact, regions=["GB"])
    token = token_create(user=make_user("ines", Role.LEAD), name="bot", scopes=["send_chats"], days=None)
    own, early, late = psutil.Process(), [0.0, 0.0], [0.0, 0.0]
    with web_servers() as (url, processes), ThreadPoolExecutor(SENDERS) as pool:
        began = perf_counter()
        requests = iter(range(0, chats, EACH))
        while some := list(islice(requests, WARM)):
            list(pool.map(lambda first: _send(url, token.secret, first, chats), some))
            late = [max(_mb(one) for one in processes()), _mb(own)]
            early = late if some[0] == 0 else early
        rate = chats / (perf_counter() - began)
    source = ChatSource.objects.get()
    stored = (Chat.objects.count(), ChatWords.objects.count(), source.created)
    if set(stored) != {chats}:
        raise RuntimeError(f"{stored} stored of {chats:,}")
    if redact and Chat.objects.filter(messages__icontains="@example.com").exists():
        raise RuntimeError("an address is left")
    return {"rate": rate, "servers": late[0] - early[0], "sender": late[1] - early[1]}


@contextmanager
def web_servers() -> Iterator[tuple[str, Any]]:
    """Two servers on one socket, as `serve` starts them; their address, and what lists their processes."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server((HOST, 0), backlog=64) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        with (Path(folder) / "web.log").open("wb") as log:
            servers = [
                subprocess.Popen(
                    web_command(f"fd://{listener.fileno()}"),
                    cwd=settings.BASE_DIR,
                    stdout=log,
                    stderr=log,
                    pass_fds=[listener.fileno()],
                )
                for _ in range(WEB_SERVERS)
            ]
        try:
            wait_for_answers(url)
            yield url, lambda: processes_of(servers)
        finally:
            for one in servers:
                one.terminate()
            for one in servers:
                one.wait(60)


def wait_for_answers(url: str) -> None:
    """Wait until the servers answer."""
    for _ in range(600):
        try:
            if httpx2.get(f"{url}/healthz", timeout=5).is_success:
                return
        except httpx2.HTTPError:
            sleep(0.1)
    raise RuntimeError("no web server answers")


def processes_of(servers: Sequence["subprocess.Popen[bytes]"]) -> list[psutil.Process]:
    """Return the processes that answer: those that gunicorn has forked."""
    return [child for one in servers for child in psutil.Process(one.pid).children()]


def _mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def _send(url: str, token: str, first: int, chats: int) -> None:
    answer = httpx2.post(
        f"{url}/api/chats/",
        content=gzip.compress(_body(first, chats), 1),
        headers={
            "Authorization": f"Token {token}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
        },
        timeout=60,
    )
    if answer.status_code != 200 or answer.json()["created"] != min(EACH, chats - first):
        raise RuntimeError(f"{answer.status_code}: {answer.text[:300]}")


def _body(first: int, chats: int) -> bytes:
    rows = [
        {
            "id": f"c-{n}",
            "topic": f"topic {n % 20}",
            "messages": [
                {"role": "user", "content": f"Where is order {n}? Write to customer{n}@example.com please."},
                {"role": "assistant", "content": f"Order {n} left our warehouse and arrives on Tuesday."},
                {"role": "user", "content": "Thank you, that is all that I wanted to know today."},
                {"role": "assistant", "content": "You are welcome. Have a good day!"},
            ],
        }
        for n in range(first, min(first + EACH, chats))
    ]
    return json.dumps({"source": "shop-bot", "chats": rows}).encode()
