"""Clusters of rationales: planted problems are found, noise stays out, the same input gives the same."""

from collections.abc import Sequence

import pytest
from sklearn.metrics import adjusted_rand_score

from alignment.issues.core.clusters import Cluster, Corpus, FailingText, Place, closest, clusters_of, terms_of
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
            word for problem in problems for part in PROBLEMS[problem][1] for word in terms_of(f"{part}.")
        }
        assert set(one.terms[:3]) <= said


def test_bits_tell_which_text_has_which_term() -> None:
    rows = planted(EQUAL, noise=0, seed=1)
    one = clustered(rows)[0]
    for member, bits in zip(one.members, one.bits, strict=True):
        has = {term for place, term in enumerate(one.terms) if bits >> place & 1}
        assert has == set(one.terms) & set(terms_of(rows[member].text))


def test_the_same_texts_give_the_same_clusters() -> None:
    rows = planted(EQUAL, noise=20, seed=3)
    assert clustered(rows) == clustered(rows)


def test_few_or_unrelated_texts_have_no_cluster() -> None:
    assert clustered(planted({"tracking": 4}, noise=0, seed=1)) == []
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
