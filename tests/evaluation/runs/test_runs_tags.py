"""Money and time as the pages of runs show them."""

from decimal import Decimal

import pytest

from evaluation.templatetags.runs import budget_bar, duration, role_name, usd


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.1"), "$0.10"),
        (Decimal("0.0123"), "$0.0123"),
        (Decimal("0.00001"), "&lt; $0.0001"),
        (Decimal(0), "$0.00"),
        (2, "$2.00"),
    ],
)
def test_money_has_cents_or_as_many_digits_as_it_needs(value: Decimal, shown: str) -> None:
    assert usd(value) == shown


@pytest.mark.parametrize("unknown", [None, ""])
def test_an_unknown_cost_is_a_dash_and_never_zero(unknown: str | None) -> None:
    assert "–" in usd(unknown)
    assert "0" not in usd(unknown)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (90, "1 min 30 s"), (1800, "30 min"), (7300, "2 h 1 min"), (None, "")],
)
def test_a_length_of_time_is_as_coarse_as_it_may_be(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_a_spent_budget_turns_its_bar() -> None:
    assert 'class="done" width="39.00%"' in budget_bar(0.39)
    assert 'class="bad" width="100.00%"' in budget_bar(1)


def test_roles_have_names() -> None:
    assert (role_name("customer"), role_name("unheard of")) == ("Customer critic", "unheard of")
