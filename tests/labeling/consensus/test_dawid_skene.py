"""Dawid–Skene consensus: the published case, planted error rates, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from labeling.consensus.core.dawid_skene import DawidSkene, TooFewError, dawid_skene

# Table 1 of Dawid and Skene (1979): 45 patients, the first anaesthetist three times, then four others once.
# (Some copies have 1 2 2 for the first anaesthetist and patient 7.)
ANAESTHETISTS = """
1111111 3334334 1122122 2223121 2223222 2223322 1212111 3333433 2222223 2322223 4444444 2223343
1111111 2223212 1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222
1111111 1111111 2322222 1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343
2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""
RATERS = (0, 0, 0, 1, 2, 3, 4)


def long(rows: list[str]) -> tuple[list[int], list[int], list[int]]:
    """Items, raters and answers, one entry an answer."""
    cells = [
        (item, rater, int(answer) - 1)
        for item, row in enumerate(rows)
        for rater, answer in zip(RATERS, row, strict=True)
    ]
    items, raters, answers = zip(*cells, strict=True)
    return list(items), list(raters), list(answers)


@pytest.fixture(scope="module")
def published() -> DawidSkene:
    rows = ANAESTHETISTS.split()
    assert len(rows) == 45
    return dawid_skene(*long(rows), categories=4)


def test_it_gives_the_published_shares_of_the_anaesthetists_data(published: DawidSkene) -> None:
    assert published.shares == pytest.approx([0.40, 0.42, 0.11, 0.07], abs=0.005)
    assert published.log_likelihood == pytest.approx(-190.731, abs=0.001)
    assert published.converged
    assert published.iterations < 50
    assert not published.switched


def test_a_rater_who_answered_an_item_thrice_counts_thrice(published: DawidSkene) -> None:
    assert published.answered.tolist() == [135, 45, 45, 45, 45]


def test_posteriors_and_confusion_are_probabilities(published: DawidSkene) -> None:
    assert published.posteriors.sum(axis=1) == pytest.approx(np.ones(45))
    assert published.confusion.sum(axis=2) == pytest.approx(np.ones((5, 4)))


def test_the_same_answers_give_the_same_numbers_in_any_order() -> None:
    rng = np.random.default_rng(7)
    columns = planted(rng, chats=200)
    order = rng.permutation(len(columns[0]))
    first = dawid_skene(*columns, categories=2)
    again = dawid_skene(*columns, categories=2)
    mixed = dawid_skene(*(column[order] for column in columns), categories=2)
    assert first.posteriors.tolist() == again.posteriors.tolist()
    assert mixed.posteriors == pytest.approx(first.posteriors, abs=1e-9)


SENSITIVITY, SPECIFICITY = (0.95, 0.9, 0.8, 0.7), (0.9, 0.95, 0.6, 0.9)


def planted(rng: np.random.Generator, *, chats: int, missing: float = 0.2) -> list[np.ndarray]:
    """Labels of four raters who err at known rates, 70% of the chats True, a fifth of the labels missing."""
    truth = rng.random(chats) < 0.7
    cells = [
        (chat, rater, int(rng.random() < (SENSITIVITY[rater] if truth[chat] else 1 - SPECIFICITY[rater])))
        for chat in range(chats)
        for rater in range(4)
        if rater == 0 or rng.random() >= missing
    ]
    return [np.array(column) for column in zip(*cells, strict=True)]


def test_it_finds_planted_sensitivities_and_specificities() -> None:
    found = dawid_skene(*planted(np.random.default_rng(3), chats=8000), categories=2)
    assert found.shares[1] == pytest.approx(0.7, abs=0.02)
    for rater in range(4):
        assert found.right(rater, 1) == pytest.approx(SENSITIVITY[rater], abs=0.02)
        assert found.right(rater, 0) == pytest.approx(SPECIFICITY[rater], abs=0.03)


def test_a_good_rater_outweighs_two_careless_ones() -> None:
    """Where the majority says True, 2:1, and the one who is nearly always right says False."""
    rng = np.random.default_rng(5)
    truth = rng.random(2000) < 0.5
    right = rng.random((2000, 3)) < np.array([0.99, 0.6, 0.6])
    answers = np.where(right, truth[:, None], ~truth[:, None]).astype(int)
    items, raters = np.indices(answers.shape)
    found = dawid_skene(items.ravel(), raters.ravel(), answers.ravel(), categories=2)
    outvoted = (answers == [0, 1, 1]).all(axis=1)
    assert (found.posteriors[outvoted, 0] > 0.8).all()


def test_a_category_nobody_answered_has_share_zero_and_no_rates() -> None:
    found = dawid_skene([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0, 0, 1, 1, 1, 1], categories=3)
    assert found.shares[2] == 0
    assert found.right(0, 2) is None
    assert not found.switched
    assert found.posteriors[:, 2].tolist() == [0, 0]


def test_one_answer_for_everything_is_certain_and_no_error() -> None:
    found = dawid_skene([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [1] * 6, categories=2)
    assert (found.shares.tolist(), found.converged) == ([0, 1], True)
    assert found.right(0, 0) is None


def test_too_few_steps_are_reported() -> None:
    found = dawid_skene(*planted(np.random.default_rng(3), chats=200), categories=2, iterations=1)
    assert (found.iterations, found.converged) == (1, False)


def unanimous(answers: list[int], *others: tuple[int, int, int]) -> DawidSkene:
    """Chats on which three raters answer alike, then chats with the three answers given."""
    rows = np.array([*([answer] * 3 for answer in answers), *others])
    items, raters = np.indices(rows.shape)
    return dawid_skene(items.ravel(), raters.ravel(), rows.ravel(), categories=3)


@pytest.mark.parametrize("stray", [(2, 1, 1), (0, 1, 1)])
def test_an_answer_that_is_never_in_the_majority_takes_nothing_from_the_others(
    stray: tuple[int, int, int],
) -> None:
    falses = 0 if 0 in stray else 9
    found = unanimous([1] * (39 - falses) + [0] * falses, stray)
    assert found.converged
    assert not found.switched
    assert (found.posteriors[:39].max(axis=1) > 0.99).all()


def test_swapped_classes_are_reported() -> None:
    """As EM from another start would end: the same classes with their names exchanged."""
    found = unanimous([1] * 30 + [0] * 9, (0, 1, 1))
    assert not found.switched
    assert replace(found, expected=found.expected[[1, 0, 2]]).switched


@pytest.mark.parametrize(
    ("items", "raters", "answers", "why"),
    [
        ([], [], [], "no answers"),
        ([0, 0], [0, 1], [0, 1], "fewer than 3 raters"),
        ([0, 1, 2], [0, 1, 2], [0, 1, 1], "no item has answers of two raters"),
    ],
)
def test_too_few_answers_are_refused_with_the_reason(
    items: list[int], raters: list[int], answers: list[int], why: str
) -> None:
    with pytest.raises(TooFewError, match=why):
        dawid_skene(items, raters, answers, categories=2)


@pytest.mark.parametrize(
    ("items", "raters", "answers", "why"),
    [
        ([0, 0], [0, 1, 2], [0, 1, 1], "one item, one rater and one answer"),
        ([0, 0, 0], [0, 1, 2], [0, 1, 2], "none of the 2 categories"),
        ([0, 0, 0], [0, 1, 2], [0, 1, -1], "none of the 2 categories"),
        ([0, 2, 2], [0, 1, 2], [0, 1, 1], "item numbers"),
        ([0, 0, 0], [0, 3, 2], [0, 1, 1], "rater numbers"),
        ([0, 0, -1], [0, 1, 2], [0, 1, 1], "item numbers"),
    ],
)
def test_malformed_input_is_an_error(
    items: list[int], raters: list[int], answers: list[int], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        dawid_skene(items, raters, answers, categories=2)
