"""Disagreements read and triaged by a test's client."""

from typing import Any

from django.test import Client

from alignment.models.misalignments import Misalignment
from tests.factories.compared_runs import text_of

LIST = "/misalignments/"
API = "/api/misalignments/"


def item_on(n: int, key: str = "polite") -> Misalignment:
    return Misalignment.objects.get(chat__external_id=f"chat-{n}", criterion__key=key)


def triage(client: Client, item: Misalignment, **change: object) -> Any:
    body = {"revision": item.revision} | change
    return client.patch(f"{API}{item.pk}/", body, content_type="application/json")


def links_of(client: Client, item: Misalignment) -> str:
    """The item beside the list, with each run of whitespace as one space, as a browser shows it."""
    return " ".join(text_of(client.get(f"{LIST}{item.pk}/")).split())
