"""Shipped prices and context windows: where the user's file is silent, with source and date."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices import data_snapshot
from genai_prices.types import StartDateConstraint
from pytest_django import Settings

from evaluation.endpoints.core.known_models import known_profile
from evaluation.endpoints.core.price_list import NEWEST_CHANGE, RELEASE, SOURCE, listed_model
from evaluation.gateway.current import current_prices
from evaluation.gateway.prices import Price, cost, highest_cost, price_sources

pytestmark = pytest.mark.django_db
OPENAI = "https://api.openai.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"


def test_the_stated_release_and_date_are_those_of_the_installed_list() -> None:
    starts = {
        price.constraint.start_date
        for provider in data_snapshot.get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for price in model.prices
        if isinstance(price.constraint, StartDateConstraint)
    }
    assert genai_prices.__version__ == RELEASE
    # Later changes are announced, not in force.
    assert max(day for day in starts if day <= date(2026, 11, 28)) == NEWEST_CHANGE
    assert SOURCE == "genai-prices 0.2.3 (2026-11-09)"


def test_a_models_price_and_context_are_found_by_address_and_name() -> None:
    # OpenAI's published price of GPT-4.1 mini: $0.40 in, $0.10 cached, $1.60 out.
    found = current_prices(endpoint=OPENAI, models=["gpt-4.1-mini", "my-own"])
    assert found == {"gpt-4.1-mini": Price(Decimal("0.4"), Decimal("1.6"), Decimal("0.1"))}
    assert price_sources(prices=found, models=["gpt-4.1-mini", "my-own"]) == [SOURCE]
    profile = known_profile(endpoint="https://api.anthropic.com/v1", model="claude-haiku-4-5")
    assert (profile.context, profile.source("context")) == (200_000, "price list")


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8000/v1", "embedded:0a1b", "https://x.test/api"])
def test_a_well_known_name_at_another_address_has_no_price(endpoint: str) -> None:
    assert current_prices(endpoint=endpoint, models=["gpt-4.1-mini"]) == {}
    assert listed_model(endpoint=endpoint, model="gpt-4.1-mini") is None


def test_the_users_price_file_overrules_the_list(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('{"gpt-4.1-mini": {"input": 9, "output": 9}}', encoding="utf-8")
    settings.LACE_PRICES = str(path)
    found = current_prices(endpoint=OPENAI, models=["gpt-4.1-mini", "gpt-4.1"])
    assert found["gpt-4.1-mini"].input == 9
    assert price_sources(prices=found, models=found) == [SOURCE, "the server's price file"]


def test_a_prompt_beyond_the_first_price_step_has_an_unknown_cost() -> None:
    # Google's published price of Gemini 2.5 Pro: $1.25 in and $10 out, more above 200,000 tokens.
    prices = current_prices(endpoint=GEMINI, models=["gemini-2.5-pro"])
    asked = {"prices": prices, "model": "gemini-2.5-pro", "completion_tokens": 1000}
    assert cost(**asked, prompt_tokens=200_000) == Decimal("0.26")  # type: ignore[arg-type]
    assert cost(**asked, prompt_tokens=200_001) is None  # type: ignore[arg-type]


def test_a_budget_reserves_the_highest_step_for_a_prompt_beyond_the_first() -> None:
    # Above 200,000 tokens Gemini 2.5 Pro costs $2.50 in and $15 out.
    prices = current_prices(endpoint=GEMINI, models=["gemini-2.5-pro"])
    asked = {"prices": prices, "model": "gemini-2.5-pro", "completion_tokens": 1000}
    assert highest_cost(**asked, prompt_tokens=200_000) == Decimal("0.26")  # type: ignore[arg-type]
    assert highest_cost(**asked, prompt_tokens=400_000) == Decimal("1.015")  # type: ignore[arg-type]


def test_a_fee_per_request_leaves_the_cost_unknown() -> None:
    assert current_prices(endpoint="https://api.perplexity.ai", models=["sonar"]) == {}


def test_a_price_that_starts_later_is_not_used_before() -> None:
    # Google announced that Gemini 3.8 Flash costs twice as much from 2027 on.
    days = datetime(2026, 12, 31, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)
    found = [listed_model(endpoint=GEMINI, model="gemini-3.8-flash", now=day) for day in days]
    assert [one.input for one in found if one] == [Decimal("0.75"), Decimal("1.5")]
