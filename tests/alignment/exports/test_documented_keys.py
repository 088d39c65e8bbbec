"""docs/reference/api.md names every key of the JSON documents."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from alignment.reports.core.judge_side import NAMES
from tests.factories.compared_runs import Compared, one_of_each_status
from tests.factories.judge_comparison import contrary, judged

pytestmark = pytest.mark.django_db


def documented() -> dict[str, set[str]]:
    """The names in backticks, by the first cell of their row in the table of documents."""
    text = (Path(settings.BASE_DIR) / "docs/reference/api.md").read_text(encoding="utf-8")
    section = text.split("## Documents")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("| ")]
    return {name.replace("`", ""): set(re.findall(r"`(\w+)`", keys)) for name, keys in rows}


def missing(keys: Iterable[str], *rows: str) -> set[str]:
    """The keys that none of these rows of the table names."""
    known = documented()
    return set(keys) - set().union(*(known[row] for row in rows))


def all_keys(value: Mapping[str, Any], *parts: str) -> set[str]:
    """The keys of a document, and of the objects in its lists `parts`."""
    return {*value, *(key for part in parts for row in value[part] for key in row)}


def test_every_key_of_a_report_is_documented(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    body = lead.get(reverse("api_run_report", args=[compared.run.pk])).json()
    assert missing(body, "alignment report") == set()
    entry = body["criteria"][0]
    assert missing(entry.keys() - set(NAMES), "its criteria") == set()
    assert missing(entry["human"], "its human") == set()
    groups = [body["overall"], *body["dimensions"], *body["tiers"]]
    assert missing(all_keys({"all": groups}, "all") - {"all"}, "its overall, dimensions, tiers") == set()
    assert missing(body["pinned"], "its pinned") == set()
    of_one = lead.get(reverse("api_criterion_report", args=[compared.run.pk, entry["key"]])).json()
    assert missing(of_one, "criterion report", "alignment report") == set()


def test_every_key_of_the_league_is_documented(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    judged(compared, "other", contrary, engine="direct")
    body = lead.get(reverse("api_set_league", args=[compared.chat_set.pk])).json()
    assert missing(all_keys(body, "runs"), "engine league") == set()
    assert missing(all_keys(body["groups"][0], "judges", "pairs"), "its groups") == set()


def test_every_key_of_the_baselines_is_documented(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    body = lead.get(reverse("api_run_baselines", args=[compared.run.pk])).json()
    assert missing(body, "baselines", "alignment report") == set()
