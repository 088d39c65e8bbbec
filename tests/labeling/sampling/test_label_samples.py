"""A random audit beside more of the suspect chats, and the exact probability of each chat to be labelled."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import pytest

from labeling.sampling.core import (
    JudgedChat,
    LabelProbabilities,
    LabelSource,
    audit_size,
    label_probabilities,
    sample_labels,
)

SEEDS = 4000


@dataclass(frozen=True)
class Labelled:
    """One of all possible labelled samples, as the numbers of its chats, with its probability."""

    chats: frozenset[int]
    probability: Fraction


def every_sample(*, judged: int, suspects: int, audit: int, oversample: int) -> Iterator[Labelled]:
    """List all samples: chats 0 to `suspects` - 1 are suspect."""
    audits = list(itertools.combinations(range(judged), audit))
    for audited in audits:
        missed = sorted(set(range(suspects)) - set(audited))
        added = list(itertools.combinations(missed, min(oversample, len(missed))))
        for one in added:
            yield Labelled(frozenset({*audited, *one}), Fraction(1, len(audits) * len(added)))


@pytest.mark.parametrize(
    ("judged", "suspects", "audit", "oversample"),
    [
        (6, 3, 2, 1),
        (6, 3, 2, 2),
        (7, 2, 3, 2),
        (7, 2, 3, 5),
        (5, 0, 2, 3),
        (5, 5, 2, 2),
        (6, 3, 0, 2),
        (4, 2, 4, 1),
    ],
)
def test_the_chances_are_those_of_all_possible_samples(
    judged: int, suspects: int, audit: int, oversample: int
) -> None:
    of = dict.fromkeys(range(judged), Fraction(0))
    for one in every_sample(judged=judged, suspects=suspects, audit=audit, oversample=oversample):
        for chat in one.chats:
            of[chat] += one.probability
    probabilities = label_probabilities(judged=judged, suspects=suspects, audit=audit, oversample=oversample)
    for chat in range(judged):
        assert float(of[chat]) == pytest.approx(
            probabilities.suspect if chat < suspects else probabilities.other
        )
    assert probabilities.audit == pytest.approx(audit / judged)


def test_weighting_by_the_inverse_chances_is_unbiased_over_all_possible_samples() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    probabilities = label_probabilities(judged=6, suspects=3, audit=2, oversample=2)
    expected = sum(
        float(one.probability)
        * sum(
            values[chat] / (probabilities.suspect if chat < 3 else probabilities.other) for chat in one.chats
        )
        for one in every_sample(judged=6, suspects=3, audit=2, oversample=2)
    )
    assert expected == pytest.approx(sum(values))


def sample(size: int, *, suspects: int, probability: float = 0.1) -> list[JudgedChat]:
    return [JudgedChat(chat, chat < suspects, probability) for chat in range(size)]


def test_the_probability_of_a_chat_counts_both_parts() -> None:
    found = sample_labels(sample(100, suspects=20, probability=0.05), audit=10, oversample=5, seed=1)
    assert found.probabilities == LabelProbabilities(audit=0.1, suspect=0.35, other=0.1)
    by_kind = {one.suspect: (one.probability, one.audit_probability) for one in found.chats}
    assert by_kind[True] == pytest.approx((0.0175, 0.005))
    assert by_kind[False] == pytest.approx((0.005, 0.005))


def test_the_audit_does_not_depend_on_verdicts() -> None:
    audits = [
        {
            one.chat
            for one in sample_labels(sample(50, suspects=n), audit=10, oversample=9, seed=4).chats
            if one.source is LabelSource.AUDIT
        }
        for n in (0, 10, 50)
    ]
    assert audits[0] == audits[1] == audits[2]
    assert len(audits[0]) == 10


def test_the_oversample_adds_suspect_chats_that_the_audit_missed() -> None:
    found = sample_labels(sample(50, suspects=12), audit=10, oversample=5, seed=4)
    added = [one for one in found.chats if one.source is LabelSource.SUSPECT]
    assert len(added) == 5
    assert all(one.suspect for one in added)
    assert len({one.chat for one in found.chats}) == 15


def test_all_suspects_are_labelled_where_there_are_no_more() -> None:
    found = sample_labels(sample(50, suspects=3), audit=10, oversample=20, seed=4)
    assert sum(one.suspect for one in found.chats) == 3
    assert found.probabilities.suspect == 1.0


def test_chats_are_labelled_as_often_as_their_chances_say() -> None:
    judged = sample(6, suspects=3)
    seen = Counter(
        one.chat
        for seed in range(SEEDS)
        for one in sample_labels(judged, audit=2, oversample=2, seed=seed).chats
    )
    probabilities = label_probabilities(judged=6, suspects=3, audit=2, oversample=2)
    for chat in judged:
        p = probabilities.suspect if chat.suspect else probabilities.other
        assert isinstance(chat.chat, int)
        assert abs(seen[chat.chat] / SEEDS - p) < 4 * (p * (1 - p) / SEEDS) ** 0.5


def test_the_order_discloses_neither_source_nor_verdict() -> None:
    places: Counter[LabelSource] = Counter()
    for seed in range(500):
        found = sample_labels(sample(40, suspects=20), audit=6, oversample=6, seed=seed)
        places.update(one.source for one in found.chats[:6])
    assert abs(places[LabelSource.AUDIT] / 3000 - 0.5) < 4 * 0.5 / 3000**0.5


def test_the_sample_does_not_depend_on_the_order_of_the_judged_chats() -> None:
    judged = sample(50, suspects=12)
    again = sample_labels(reversed(judged), audit=10, oversample=5, seed=4)
    assert sample_labels(judged, audit=10, oversample=5, seed=4) == again


def test_an_audit_share_above_nothing_has_a_chat() -> None:
    assert [audit_size(n, share=0.05) for n in (0, 1, 20, 21, 500)] == [0, 1, 1, 2, 25]
    with pytest.raises(ValueError, match="between 0 and 1"):
        audit_size(10, share=5)


def test_no_judged_chats_give_no_labels() -> None:
    assert sample_labels([], audit=5, oversample=5, seed=1).chats == ()


def test_more_suspects_than_judged_chats_are_refused() -> None:
    with pytest.raises(ValueError, match="at most all judged chats"):
        label_probabilities(judged=3, suspects=4, audit=1, oversample=0)
