"""Chats over the API: 1,000,000 in packed requests of 5,000; the memory must stay flat."""

import gzip
import json
import os
from collections.abc import Iterator
from time import perf_counter

from django.core.management import call_command
from django.test import Client

from bench import Figure, peak_mb
from bench._child import in_child
from labeling.models.ingest import IngestSettings
from labeling.models.people import Role
from labeling.people.services.tokens import token_create
from tests.factories.rows import make_user
from tests.with_postgres import postgres

CHATS = int(os.environ.get("LACE_BENCH_CHATS", "1000000"))
EACH = 5_000
LEAST_PER_SECOND = 2_000.0
GROWTH_MB = 50.0  # from the tenth request to the last


def figures() -> Iterator[Figure]:
    """Chats per second on PostgreSQL, with and without redaction, and how far the memory grows."""
    for name, redact in (("plain", []), ("redacted", ["email", "phone", "card", "iban"])):
        with postgres() as url:
            found = in_child("ingest", "sent", {"redact": redact}, {"DATABASE_URL": url})
        yield Figure(f"PostgreSQL, {name}", found["rate"], LEAST_PER_SECOND, "chats/s", floor=True)
        yield Figure(f"PostgreSQL, {name}, growth of memory", found["growth"], GROWTH_MB, "MB")


def sent(redact: list[str]) -> dict[str, float]:
    """Send all chats with one token, one request after the other."""
    call_command("migrate", verbosity=0)
    IngestSettings.objects.create(redact=redact, regions=["GB"])
    token = token_create(user=make_user("ines", Role.LEAD), name="bot", scopes=["send_chats"], days=None)
    client, early, spent = Client(), 0.0, 0.0
    for n in range(0, CHATS, EACH):
        body = gzip.compress(_body(n), 1)
        began = perf_counter()
        answer = client.post(
            "/api/chats/",
            body,
            content_type="application/json",
            headers={"Authorization": f"Token {token.secret}", "Content-Encoding": "gzip"},
        )
        spent += perf_counter() - began
        assert answer.json()["created"] == min(EACH, CHATS - n), answer.content[:300]
        early = peak_mb() if n == 10 * EACH else early
    return {"rate": CHATS / spent, "growth": peak_mb() - early}


def _body(first: int) -> bytes:
    chats = [
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
        for n in range(first, min(first + EACH, CHATS))
    ]
    return json.dumps({"source": "shop-bot", "chats": chats}).encode()
