"""Power of the gate: it matches the simulated releases of the docs."""

import pytest

from alignment.regression.core import GatePolicy, chance_found, gate_power


@pytest.mark.parametrize(
    ("chats", "loss", "simulated"),
    [(100, 0.06, 0.19), (200, 0.06, 0.63), (400, 0.06, 0.96), (100, 0.079, 0.44), (200, 0.079, 0.98)],
)
def test_the_chance_is_near_and_never_above_what_rules_a_to_c_found(
    chats: int, loss: float, simulated: float
) -> None:
    """Rule B finds a little more."""
    found = chance_found(chats, loss=loss, alpha=GatePolicy().family_alpha / 13)
    assert simulated - 0.07 < found < simulated + 0.02


def test_more_labels_see_more() -> None:
    chances = [chance_found(n, loss=0.06, alpha=0.05) for n in (0, 1, 50, 100, 200, 400)]
    assert chances == sorted(chances)
    assert chances[0] == 0


def test_without_a_loss_the_chance_is_the_level() -> None:
    assert chance_found(400, loss=0.0, alpha=0.05) == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(
    ("chats", "criteria", "words"),
    [
        (99, 1, "99 labelled chats are too few to pass. Label 1 more for the gate, 100 in all."),
        (400, 1, "is nearly always found (100%)"),
        (100, 13, "of one criterion is mostly missed (found in 14%)"),
        (20, 13, "20 labelled chats are too few to pass. Label 12 more for the gate, 32 in all."),
        (50, 0, "No criterion of this test can block"),
        (1_000_000, 13, "With 1,000,000 labelled chats a loss of 6 points"),
    ],
)
def test_it_is_said_in_a_sentence(chats: int, criteria: int, words: str) -> None:
    assert words in gate_power(chats, criteria=criteria, policy=GatePolicy())
