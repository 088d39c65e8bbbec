"""Addresses of the baselines and the document behind them."""

from typing import Any

from django.test import Client
from django.urls import reverse

from evaluation.models.runs import Run
from tests.factories.compared_runs import Compared

HTMX = {"HX-Request": "true"}


def url(
    compared: Compared, name: str = "api_run_baselines", *, run: Run | None = None, query: str = ""
) -> str:
    return reverse(name, args=[(run or compared.run).pk]) + query


def document(
    client: Client, compared: Compared, *, run: Run | None = None, query: str = ""
) -> dict[str, Any]:
    return _read(client.get(url(compared, run=run, query=query)))


def stored_document(
    client: Client, compared: Compared, *, run: Run | None = None, query: str = ""
) -> dict[str, Any]:
    """The same document, which the POST has stored."""
    return _read(client.post(url(compared, run=run, query=query)))


def _read(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found
