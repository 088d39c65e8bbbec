"""Clusters of rationales: planted problems are found, noise stays out, the same input gives the same."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from alignment.issues.core.clusters import Cluster, Corpus, FailingText, Meanings, Place, closest, clusters_of
from common.search.words import plain_words
from tests.factories.issue_texts import PROBLEMS, Planted, planted

KEY = b"key"
EQUAL = dict.fromkeys(PROBLEMS, 40)
UNEQUAL = dict(zip(PROBLEMS, (160, 90, 60, 40, 25, 15), strict=True))


MANY = dict.fromkeys(PROBLEMS, 120)


def clustered(rows: Sequence[Planted]) -> list[Cluster]:
    return clusters_of(Corpus.of([FailingText(one.topic, one.text) for one in rows]), key=KEY)


def labels(rows: Sequence[Planted], found: Sequence[Cluster]) -> list[int]:
    """The cluster of each text; each unclustered text alone."""
    place = {member: number for number, one in enumerate(found) for member in one.members}
    return [place.get(number, -1 - number) for number in range(len(rows))]


@pytest.mark.parametrize("counts", [EQUAL, UNEQUAL, MANY], ids=["equal", "unequal", "many"])
@pytest.mark.parametrize("seed", [1, 2])
def test_planted_problems_are_found_in_three_languages(counts: dict[str, int], seed: int) -> None:
    single = sum(counts.values()) // 4
    rows = planted(counts, noise=single, seed=seed)
    found = clustered(rows)
    truth = [one.problem or f"single {number}" for number, one in enumerate(rows)]
    assert adjusted_rand_score(truth, labels(rows, found)) >= 0.95
    joined = sum(value >= 0 for one, value in zip(rows, labels(rows, found), strict=True) if not one.problem)
    assert joined <= 0.1 * single  # texts that share no problem stay out


def test_a_single_problem_is_found_between_other_texts() -> None:
    rows = planted({"tracking": 20}, noise=20, seed=1)
    largest, *others = clustered(rows)
    assert len(largest.members) >= 17
    assert {rows[member].problem for member in largest.members} == {"tracking"}
    assert sum(len(one.members) for one in others) <= 5


def test_terms_name_the_problem_and_not_the_phrases_of_every_rationale() -> None:
    rows = planted(EQUAL, noise=60, seed=1)
    for one in clustered(rows):
        problems = {rows[member].problem for member in one.members[:20]}
        assert len(problems) == 1
        said = {
            word for problem in problems for part in PROBLEMS[problem][1] for word in plain_words(f"{part}.")
        }
        assert {word for term in one.terms[:2] for word in plain_words(term)[:-1]} <= said


def test_bits_tell_which_text_has_which_term() -> None:
    rows = planted({"refund_days": 40, "voucher": 40}, noise=0, seed=1)
    one = clustered(rows)[0]
    for member, bits in zip(one.members, one.bits, strict=True):
        has = {term for place, term in enumerate(one.terms) if bits >> place & 1}
        said = "".join(plain_words(rows[member].text.casefold()))
        assert has == {term for term in one.terms if "".join(plain_words(term)) in said}


def test_the_same_texts_give_the_same_clusters() -> None:
    rows = planted(EQUAL, noise=20, seed=3)
    assert clustered(rows) == clustered(rows)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_few_or_unrelated_texts_have_no_cluster(seed: int) -> None:
    assert clustered(planted({"tracking": 9}, noise=0, seed=seed)) == []
    assert clustered(planted({}, noise=30, seed=seed)) == []
    assert clustered([Planted("a", f"word{n}", "") for n in range(9)]) == []
    assert clustered([Planted("a", "", "") for _ in range(9)]) == []


def test_more_texts_than_are_decomposed_as_a_whole_give_the_same_problems() -> None:
    rows = planted(dict.fromkeys(PROBLEMS, 200), noise=0, seed=1)
    truth = [one.problem for one in rows]
    assert adjusted_rand_score(truth, labels(rows, clustered(rows))) >= 0.95


def test_texts_that_all_say_the_same_are_one_cluster_and_groups_stay_apart() -> None:
    texts = [FailingText("a", "No refund date is given.", group=n % 2) for n in range(20)]
    found = clusters_of(Corpus.of(texts), key=KEY)
    assert [(one.group, len(one.members)) for one in found] == [(0, 10), (1, 10)]


VOUCHER = ("The voucher was rejected without a reason", "Der Gutschein wird grundlos abgelehnt")
PARCEL = ("The parcel is lost and nobody looks for it", "No status of the parcel is given")


def with_meanings(vouchers: Sequence[str]) -> Corpus:
    """Forty texts on two problems of one criterion, and some of other criteria; all vectors are similar."""
    pairs = zip(vouchers, PARCEL, strict=True)
    said = [text for pair in pairs for text in pair] * 10
    texts = [FailingText("a", text, group=0) for text in said]
    texts += [FailingText("a", f"Text of criterion {group}", group) for group in (1, 2, 3) for _ in range(10)]
    places = [int(text in PARCEL) for text in said] + [2 + n // 10 for n in range(30)]
    vectors = np.eye(5, 300)[places] + 3 + np.random.default_rng(1).normal(0, 0.02, (70, 300))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Corpus.of(texts, meanings=Meanings(vectors, "m"), key=KEY)


def test_embeddings_join_a_problem_in_two_languages_although_all_texts_are_similar() -> None:
    both = [one for one in clusters_of(with_meanings(VOUCHER), key=KEY) if one.group == 0]
    assert sorted({member % 2 for member in one.members} for one in both) == [{0}, {1}]
    assert [len(one.members) for one in both] == [20, 20]
    english = clusters_of(with_meanings((VOUCHER[0], VOUCHER[0])), key=KEY)
    place = next(one for one in english if 0 in one.members)
    german = with_meanings((VOUCHER[1], VOUCHER[1]))
    near = closest(german, range(40), {5: Place(0, place.centroid)}, key=KEY)
    assert sorted(near) == list(range(0, 40, 2))


def test_a_phrase_of_every_rationale_is_no_problem_of_one_criterion() -> None:
    common = [FailingText("a", "The answer was short and friendly", group=n % 4) for n in range(80)]
    own = [FailingText("a", "The customer had given this before", group=0) for n in range(12)]
    (found,) = clusters_of(Corpus.of([*common, *own]), key=KEY)
    assert (found.group, len(found.members)) == (0, 12)
    assert found.terms[0] == "The customer had given this before"


def test_a_centroid_holds_no_words_and_finds_texts_of_its_problem() -> None:
    rows = planted(EQUAL, noise=0, seed=1)
    one = next(one for one in clustered(rows) if rows[one.members[0]].problem == "voucher")
    assert not any(term in one.centroid for term in one.terms)
    later = planted({"voucher": 9, "anrede": 9, "tracking": 9}, noise=20, seed=9)
    texts = Corpus.of([FailingText(row.topic, row.text) for row in later])
    near = closest(texts, range(len(later)), {5: Place(0, one.centroid)}, key=KEY)
    assert {later[number].problem for number in near} == {"voucher"}
    assert len(near) >= 6
    assert closest(texts, range(len(later)), {5: Place(1, one.centroid)}, key=KEY) == {}
