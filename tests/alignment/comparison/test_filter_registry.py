"""The registry of filters: the report, its list and the league take labels and choices from it."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.filters import FILTERS, chosen_filter
from evaluation.models.judges import Engine
from labeling.models.chats import Split
from tests.factories.compared_runs import Compared, urls


def values(row: Mapping[str, Any]) -> list[str]:
    return [option["value"] for option in row["options"]]


def test_a_filter_offers_everything_and_then_its_own_choices() -> None:
    row = chosen_filter("split", "dev")
    assert (row["name"], row["label"], values(row)) == ("split", "Split", ["", *Split.values])
    assert [option["value"] for option in row["options"] if option["selected"]] == ["dev"]
    assert values(chosen_filter("engine", "")) == ["", *Engine.values, "outside"]


def test_a_required_filter_offers_no_everything() -> None:
    criteria = [("polite", "Polite")]
    assert values(chosen_filter("criterion", "polite", criteria, required=True)) == ["polite"]
    assert values(chosen_filter("run", "1", [("1", "Run 1")])) == ["1"]


def test_an_unknown_filter_is_an_error() -> None:
    with pytest.raises(KeyError):
        chosen_filter("colour", "")


@pytest.mark.django_db
def test_every_filter_of_a_report_and_of_the_list_has_the_label_of_the_registry(
    compared: Compared, lead: Client
) -> None:
    for url in (
        urls(compared)["report"],
        urls(compared)["criterion report"],
        reverse("alignment:report_list"),
    ):
        rows = [row for row in lead.get(url).context["filters"] if not row.get("hidden")]
        assert rows
        assert {row["name"]: row["label"] for row in rows} == {
            row["name"]: FILTERS[row["name"]].label for row in rows
        }
