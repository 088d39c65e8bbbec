"""What calls cost: from the user's price file, or unknown."""

from decimal import Decimal
from pathlib import Path

import pytest

from evaluation.gateway.prices import Price, PriceFileError, cost, read_prices

PRICES = {"m": Price(input=Decimal("2.5"), output=Decimal(10), cached_input=Decimal("1.25"))}


def write(folder: Path, text: str) -> Path:
    path = folder / "prices.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_prices_are_read_exactly(tmp_path: Path) -> None:
    text = '{"m": {"input": 2.5, "cached_input": 1.25, "output": 10}, "n": {"input": 0.1, "output": 0}}'
    prices = read_prices(write(tmp_path, text))
    assert prices == PRICES | {"n": Price(input=Decimal("0.1"), output=Decimal(0))}


def test_cost_is_tokens_times_price_for_a_million() -> None:
    paid = cost(prices=PRICES, model="m", prompt_tokens=3, completion_tokens=1)
    assert paid == Decimal("0.0000175")


def test_cached_tokens_cost_their_own_price() -> None:
    paid = cost(prices=PRICES, model="m", prompt_tokens=1000, cached_tokens=400, completion_tokens=0)
    assert paid == Decimal("0.002")  # 600 × 2.50 + 400 × 1.25, for a million


def test_without_a_cached_price_cached_tokens_cost_the_input_price() -> None:
    prices = {"m": Price(input=Decimal(2), output=Decimal(2))}
    paid = cost(prices=prices, model="m", prompt_tokens=1000, cached_tokens=400, completion_tokens=0)
    assert paid == Decimal("0.002")


def test_more_cached_than_prompt_tokens_never_cost_less_than_nothing() -> None:
    paid = cost(prices=PRICES, model="m", prompt_tokens=10, cached_tokens=99, completion_tokens=0)
    assert paid == Decimal("0.0000125")


@pytest.mark.parametrize(("model", "prompt", "completion"), [("other", 1, 1), ("m", None, 1), ("m", 1, None)])
def test_an_unknown_price_or_count_is_unknown_and_not_0(
    model: str, prompt: int | None, completion: int | None
) -> None:
    assert cost(prices=PRICES, model=model, prompt_tokens=prompt, completion_tokens=completion) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "object of models"),
        ('{"m": 3}', "m: must be an object"),
        ('{"m": {"input": 1}}', "m: output"),
        ('{"m": {"input": "1", "output": 1}}', "m: input"),
        ('{"m": {"input": true, "output": 1}}', "m: input"),
        ('{"m": {"input": -1, "output": 1}}', "m: input"),
        ('{"m": {"input": NaN, "output": 1}}', "m: input"),
        ('{"m": {"input": Infinity, "output": 1}}', "m: input"),
        ('{"m": {"input": 1, "output": 1, "cached_input": null}}', "m: cached_input"),
        ('{"m": {"input": 1, "output": 1, "cache": 1}}', "unknown field cache"),
        ('{"m": {"input": 1, "output": 1}, "m": {"input": 2, "output": 2}}', "m occurs twice"),
    ],
)
def test_a_broken_price_file_is_refused_with_file_model_and_field(
    tmp_path: Path, text: str, words: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(PriceFileError) as caught:
        read_prices(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(PriceFileError, match="cannot be read"):
        read_prices(tmp_path / name)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes('{"é": {"input": 1, "output": 1}}'.encode("utf-16"))
    with pytest.raises(PriceFileError, match="is not JSON"):
        read_prices(path)
