"""The cost of a call, from the user's price file or the shipped list; an unknown price is None, never 0."""

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from common.problems import InputProblem
from evaluation.endpoints.core import price_list

# How prices are found: by a model's name, or by its name and endpoint.
K = TypeVar("K", bound=Hashable)

_NAMES = {"input", "cached_input", "output"}
_PER = Decimal(1_000_000)
# The price of a call through OpenAI's Batch API, as a share of the live price.
BATCH_SHARE = Decimal("0.5")
PRICE_FILE = "the server's price file"
PRICE_SETTING = "LACE_PRICES"


class PriceFileError(InputProblem, ValueError):
    """An unusable price file; the message names file, model and field."""

    def __init__(self, message: str) -> None:
        super().__init__(message, settings=(PRICE_SETTING,))


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per 1,000,000 tokens. Without a price of their own, cached prompt tokens cost `input`.

    `source` says where the price is from. Above `most_prompt_tokens` it does not hold: a call then costs at
    most the `dearest` prices.
    """

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    most_prompt_tokens: int | None = None
    dearest_input: Decimal | None = None
    dearest_output: Decimal | None = None
    source: str = field(default=PRICE_FILE, compare=False)


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices of a file `{"model": {"input": USD per 1M tokens, "cached_input"?, "output"}}`.

    Raises PriceFileError with one line.
    """
    try:
        data = json.loads(
            path.read_text(encoding="utf-8"),
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=Decimal,
            object_pairs_hook=_unique,
        )
    except OSError as error:
        raise PriceFileError(f"{path}: cannot be read ({error.strerror})") from None
    except PriceFileError as error:
        raise PriceFileError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise PriceFileError(f"{path}: is not JSON") from None
    if not isinstance(data, dict):
        raise PriceFileError(f"{path}: must be an object of models")
    return {model: _price(f"{path}: {model}", entry) for model, entry in data.items()}


def listed_prices(*, endpoint: str, models: Iterable[str]) -> dict[str, Price]:
    """Return today's shipped prices of those models of an endpoint (its id) that are listed."""
    prices = {}
    for model in models:
        found = price_list.listed_model(endpoint=endpoint, model=model)
        if found is not None and found.input is not None and found.output is not None:
            prices[model] = Price(
                input=found.input,
                output=found.output,
                cached_input=found.cached_input,
                most_prompt_tokens=found.most_prompt_tokens,
                dearest_input=found.dearest_input,
                dearest_output=found.dearest_output,
                source=price_list.SOURCE,
            )
    return prices


def entered_prices(stored: Mapping[str, Mapping[str, str]], *, source: str) -> dict[str, Price]:
    """Return the prices that a lead entered for an endpoint's models; `source` is the endpoint's name."""
    return {
        model: Price(
            input=Decimal(price["input"]),
            output=Decimal(price["output"]),
            cached_input=Decimal(price["cached_input"]) if price.get("cached_input") else None,
            source=source,
        )
        for model, price in stored.items()
    }


def price_sources(*, prices: Mapping[K, Price], models: Iterable[K]) -> list[str]:
    """Return where the known prices of these models are from, each source once."""
    return sorted({prices[model].source for model in models if model in prices})


def cost(
    *,
    prices: Mapping[K, Price],
    model: K,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    cached_tokens: int | None = None,
) -> Decimal | None:
    """Return the US dollars of one call; None if the model's price or a token count is unknown.

    Examples
    --------
    >>> price = Price(input=Decimal(2), output=Decimal(8), cached_input=Decimal(1))
    >>> cost(prices={"m": price}, model="m", prompt_tokens=1000, cached_tokens=400, completion_tokens=100)
    Decimal('0.0024')
    """
    price = prices.get(model)
    if price is None or prompt_tokens is None or completion_tokens is None:
        return None
    if price.most_prompt_tokens is not None and prompt_tokens > price.most_prompt_tokens:
        return None
    cached = min(cached_tokens or 0, prompt_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    total = (prompt_tokens - cached) * price.input + cached * cached_price + completion_tokens * price.output
    return total / _PER


def highest_cost(
    *, prices: Mapping[K, Price], model: K, prompt_tokens: int, completion_tokens: int
) -> Decimal | None:
    """Return the most US dollars that a call with at most these tokens can cost; None for an unknown price.

    Examples
    --------
    >>> price = Price(Decimal(1), Decimal(10), most_prompt_tokens=200, dearest_input=Decimal(2))
    >>> highest_cost(prices={"m": price}, model="m", prompt_tokens=100_000, completion_tokens=0)
    Decimal('0.2')
    """
    price = prices.get(model)
    if price is None:
        return None
    within = price.most_prompt_tokens is None or prompt_tokens <= price.most_prompt_tokens
    per_input = price.input if within else price.dearest_input or price.input
    per_output = price.output if within else price.dearest_output or price.output
    return (prompt_tokens * per_input + completion_tokens * per_output) / _PER


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PriceFileError(f"{twice} occurs twice")
    return dict(pairs)


def _price(where: str, entry: Any) -> Price:
    if not isinstance(entry, dict):
        raise PriceFileError(f"{where}: must be an object with input and output")
    unknown = sorted(set(entry) - _NAMES)
    if unknown:
        raise PriceFileError(f"{where}: unknown field {unknown[0]}")
    cached = _amount(where, entry, "cached_input") if "cached_input" in entry else None
    return Price(
        input=_amount(where, entry, "input"), output=_amount(where, entry, "output"), cached_input=cached
    )


def _amount(where: str, entry: dict[str, Any], name: str) -> Decimal:
    value = entry.get(name)
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0:
        raise PriceFileError(f"{where}: {name} must be a number of US dollars, 0 or more")
    return value
