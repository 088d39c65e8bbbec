"""Prices and context windows that ship with the product, by the endpoint's address and the model's name."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from genai_prices import data_snapshot
from genai_prices.types import ModelPrice, TieredPrices

# The pinned release of genai-prices and the newest price change in it.
RELEASE, NEWEST_CHANGE = "0.2.3", date(2026, 11, 9)
SOURCE = f"genai-prices {RELEASE} ({NEWEST_CHANGE:%Y-%m-%d})"


@dataclass(frozen=True, slots=True)
class ListedModel:
    """US dollars per 1,000,000 tokens, and the context in tokens; None is unknown.

    The prices hold for prompts of up to `most_prompt_tokens`; beyond that the vendor charges at most the
    `dearest` ones.
    """

    input: Decimal | None
    output: Decimal | None
    cached_input: Decimal | None
    most_prompt_tokens: int | None
    dearest_input: Decimal | None
    dearest_output: Decimal | None
    context: int | None


def listed_model(*, endpoint: str, model: str, now: datetime | None = None) -> ListedModel | None:
    """Return what the list says of a model at an endpoint's address (UTC `now`); None for an unlisted one.

    A name at another vendor's or an own address is unlisted, however well known it is elsewhere.

    Examples
    --------
    >>> listed_model(endpoint="https://api.openai.com/v1", model="gpt-4.1-mini").context
    1000000
    >>> listed_model(endpoint="http://localhost:8000/v1", model="gpt-4.1-mini") is None
    True
    """
    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(model, None, None, endpoint)
    except LookupError:
        return None
    price = found.get_prices(now or datetime.now(UTC))
    # A fee per request is no price per token: such a model's cost stays unknown.
    priced = price if not price.requests_kcount else ModelPrice()
    return ListedModel(
        input=_base(priced.input_mtok),
        output=_base(priced.output_mtok),
        cached_input=_base(priced.cache_read_mtok),
        most_prompt_tokens=_first_tier(priced),
        dearest_input=_dearest(priced.input_mtok),
        dearest_output=_dearest(priced.output_mtok),
        context=found.context_window,
    )


def _base(price: Decimal | TieredPrices | None) -> Decimal | None:
    return price.base if isinstance(price, TieredPrices) else price


def _dearest(price: Decimal | TieredPrices | None) -> Decimal | None:
    """Return the highest step of a price with steps, else None."""
    if not isinstance(price, TieredPrices):
        return None
    return max([price.base, *(tier.price for tier in price.tiers)])


def _first_tier(price: ModelPrice) -> int | None:
    """Return the prompt tokens from which one of the prices changes."""
    tiered = [one for one in (price.input_mtok, price.output_mtok) if isinstance(one, TieredPrices)]
    return min((tier.start for one in tiered for tier in one.tiers), default=None)
