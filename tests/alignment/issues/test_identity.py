"""Identity of issues over weeks: recurring, merged, split."""

from collections.abc import Mapping

from alignment.issues.core.identity import Found, Known, match_clusters


def found(centroid: Mapping[str, float], *chats: int) -> Found:
    return Found(centroid, frozenset(chats))


def known(pk: int, centroid: Mapping[str, float], *chats: int, into: int | None = None) -> Known:
    return Known(pk, centroid, frozenset(chats), into)


A, B = {"a": 1.0}, {"b": 1.0}
BOTH = {"a": 0.8, "b": 0.6}


def test_a_recurring_cluster_keeps_its_issue_and_a_new_one_gets_none() -> None:
    matches = match_clusters([found(B, 1), found({"c": 1.0}, 2)], [known(1, A), known(2, B)])
    assert (matches.issues, matches.merged) == ((2, None), {})


def test_each_issue_has_one_cluster_and_the_sum_decides() -> None:
    clusters = [found({"a": 0.9, "b": 0.436}), found({"a": 1.0})]
    assert match_clusters(clusters, [known(1, A), known(2, {"a": 0.5, "b": 0.866})]).issues == (2, 1)


def test_common_chats_identify_a_cluster_whose_words_changed() -> None:
    assert match_clusters([found(B, 1, 2, 3, 4)], [known(7, A, 1, 2, 3)]).issues == (7,)


def test_two_issues_with_one_cluster_are_merged_into_the_closer_one() -> None:
    matches = match_clusters([found(BOTH, 9)], [known(1, A), known(2, B)])
    assert (matches.issues, matches.merged) == ((1,), {2: 0})


def test_an_issue_without_any_cluster_is_not_merged() -> None:
    assert match_clusters([found(A)], [known(1, A), known(2, B)]).merged == {}


def test_a_cluster_like_a_merged_issue_belongs_to_what_that_became_part_of() -> None:
    matches = match_clusters([found(B)], [known(1, A), known(2, B, into=1)])
    assert (matches.issues, matches.apart) == ((1,), frozenset())


def test_merged_issues_with_a_cluster_each_are_split() -> None:
    matches = match_clusters([found(A), found(B)], [known(1, A), known(2, B, into=1)])
    assert (matches.issues, matches.apart) == ((1, 2), frozenset({2}))


def test_without_earlier_issues_all_are_new() -> None:
    assert match_clusters([found(A), found(B)], []).issues == (None, None)
