"""Every route by every method, and all that comes back."""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.test import Client

from tests.cases import ANSWER, NOBODY, UNSAFE, get
from tests.routes import ROUTES, address, in_world, own_routes, send
from tests.world import World

# The one answer that shows the judge's view: of a chat that was submitted, where the workspace reveals it.
REVEAL = ("api_reveal", "submitted_assignment")
by_reading_then_writing = pytest.mark.parametrize(
    "by", [pytest.param(["GET"], id="GET"), pytest.param(UNSAFE, id="unsafe", marks=pytest.mark.heavy)]
)


def as_text(response: Any) -> str:
    """All that the browser gets: status, the way it was sent, headers and body."""
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    body = b"".join(response) if response.streaming else response.content
    way = getattr(response, "redirect_chain", "")
    return f"{response.status_code}\n{way}\n{headers}\n{response.cookies.output()}\n{_words(body)}"


def _words(body: bytes) -> str:
    """What a body says: of a ZIP or Excel file, what its files say; of a picture, its bytes."""
    if body.startswith(b"\x89PNG"):
        return body.decode("latin-1")
    if not body.startswith(b"PK"):
        return body.decode()
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return "\n".join(
            f"{name}\n{archive.read(name).decode(errors='replace')}" for name in archive.namelist()
        )


def without_tokens(text: str) -> str:
    """CSRF tokens, cookies and request ids differ each time; Expires and the screen's clock tell the time."""
    salted = (
        r'name="csrfmiddlewaretoken" value="[^"]+"|^(Expires|Set-Cookie|X-Request-ID): .*$|"(now|left)": \d+'
    )
    return re.sub(salted, "", text, flags=re.MULTILINE)


def calls(world: World, *methods: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Every route by every method: its name, the method, the address, a body; each GET once."""
    read = set()
    for name in own_routes():
        for case in ROUTES.get(name, (get(NOBODY),)):
            if (name, case.args.get("assignment_id")) == REVEAL:
                continue
            body = in_world(case.body, world.args) or ANSWER
            url = address(name, case, world.args)
            for method in methods if url not in read else set(methods) - {"GET"}:
                yield name, method, url, {} if method == "GET" else body
            read.add(url)


def ask(client: Client, method: str, url: str, body: Mapping[str, Any] | None = None) -> Any:
    """One call; redirects are followed."""
    return send(client, method, url, body or {}, follow=True)
