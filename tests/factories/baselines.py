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
    response = client.get(url(compared, run=run, query=query))
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found
