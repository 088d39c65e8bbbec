"""CUSUM marks of a chart, and how long they take: the table of section 8, `Drift`, of the statistics."""

import pytest

from alignment.alerts.core.rate_cusum import Week, rate_marks, run_length


@pytest.mark.parametrize(
    ("rate", "weeks", "places"),
    [(0.90, 276, 0), (0.88, 9.1, 1), (0.87, 5.2, 1), (0.85, 2.9, 1), (0.80, 1.5, 1)],
)
def test_mean_weeks_to_a_mark_are_those_of_the_table(rate: float, weeks: float, places: int) -> None:
    """Simulated there: baseline .90, 200 chats a week, k = .5, h = 4."""
    assert round(run_length(rate, baseline=0.9, n=200).weeks, places) == weeks


def test_many_chats_a_week_come_to_the_published_run_length_of_normal_scores() -> None:
    """Montgomery (2009), Introduction to Statistical Quality Control, table 9.3: 168 two-sided, so 336."""
    assert run_length(0.5, baseline=0.5, n=5_000).weeks == pytest.approx(336, rel=0.01)


def test_marks_of_one_rate_are_false_in_17_percent_of_years_and_of_13_in_most() -> None:
    found = run_length(0.9, baseline=0.9, n=200)
    assert found.in_a_year == pytest.approx(0.17, abs=0.005)
    assert 1 - (1 - found.in_a_year) ** 13 > 0.9
    assert found.in_a_month == pytest.approx(1 - (1 - found.in_a_year) ** (1 / 12))


def test_a_higher_limit_means_fewer_false_marks() -> None:
    months = [run_length(0.9, baseline=0.9, n=200, limit=limit).in_a_month for limit in (3, 4, 5, 6)]
    assert months == sorted(months, reverse=True)
    assert months[-1] < 0.0025


def test_a_sunken_rate_is_marked_and_stays_so_until_the_version_changes() -> None:
    weeks = [Week(0.9, 200, "a"), Week(0.8, 200, "a"), Week(0.9, 200, "a"), Week(0.8, 200, "b")]
    marks = rate_marks(weeks, {"a": 0.9, "b": 0.8})
    assert [mark.marked for mark in marks] == [False, True, False, False]
    assert [mark.starts for mark in marks] == [False, False, False, True]
    assert [round(mark.sum or 0.0, 2) for mark in marks] == [0.0, 4.21, 3.71, 0.0]


def test_a_week_of_fewer_than_30_chats_is_skipped_without_a_reset() -> None:
    marks = rate_marks([Week(0.85, 200), Week(0.0, 29), Week(0.85, 200)], {"": 0.9})
    assert marks[0].sum is not None
    assert marks[0].sum == marks[1].sum
    assert marks[2].marked is False
    assert marks[2].sum == pytest.approx(2 * marks[0].sum)


def test_a_version_without_a_baseline_has_no_sum() -> None:
    marks = rate_marks([Week(0.9, 200, "a"), Week(0.1, 200, "new")], {"a": 0.9})
    assert (marks[1].sum, marks[1].marked, marks[1].starts) == (None, False, True)


def test_a_baseline_without_an_error_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        rate_marks([Week(1.0, 200)], {"": 1.0})
    with pytest.raises(ValueError, match="between 0 and 1"):
        run_length(1.0, baseline=0.9, n=200)
