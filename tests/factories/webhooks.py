"""Webhooks for tests, and a real receiver on loopback."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evaluation.gateway.keys import encrypt
from evaluation.models.outbox import SUBSCRIBED, Delivery, WebhookEndpoint
from evaluation.outbox.services import outbox_publish

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # the convention's own example


def make_webhook(
    address: str = "https://ab.test/hook", *, name: str = "Experiments", **columns: Any
) -> WebhookEndpoint:
    kinds = columns.pop("kinds", [kind.value for kind in SUBSCRIBED])
    return WebhookEndpoint.objects.create(
        name=name, address=address, secret=encrypt(SECRET), kinds=kinds, **columns
    )


@dataclass
class Receiver:
    """What arrived, as (headers, body), and when; `answer` gives the next status, or None to hang up."""

    address: str = ""
    answer: Callable[[int], int | None] = lambda count: 200
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.seen]

    @property
    def bodies(self) -> dict[str, set[bytes]]:
        """The bodies that came under each id."""
        found: dict[str, set[bytes]] = {}
        for headers, body in self.seen:
            found.setdefault(headers["webhook-id"], set()).add(body)
        return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A sender that was killed waits for no answer."""


@contextmanager
def receiver(answer: Callable[[int], int | None] = lambda count: 200) -> Iterator[Receiver]:
    """A server that keeps what it is sent; `answer` gets the number of the request, from 0."""
    kept, lock = Receiver(answer=answer), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                kept.times.append(time.time())
                kept.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
                number = len(kept.seen) - 1
            status = kept.answer(number)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"noted")

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    kept.address = f"http://127.0.0.1:{server.server_port}/hook/?source=1"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def stored_webhook(text: str) -> dict[str, Any]:
    """The ids of a webhook with this text in its name, and of a delivery to it."""
    row = make_webhook(name=f"{text}-webhook")
    outbox_publish(kind="verdicts.stored", payload={"chat_id": f"{text}-chat"})
    delivery = Delivery.objects.get(endpoint=row)
    ids = {"webhook_id": row.pk, "holdout_webhook": row.pk, "delivery_id": delivery.pk}
    return {**ids, "event_id": str(delivery.event_id)}
