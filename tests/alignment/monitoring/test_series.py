"""Lines of rates: which sums count, where a line breaks, what is left out of a rate."""

from datetime import date, timedelta

import pytest

from alignment.monitoring.core.series import (
    Cell,
    FrameSizes,
    JudgeName,
    Mark,
    Series,
    Step,
    chosen_cells,
    series,
)
from alignment.monitoring.core.weighted_rates import Reason
from alignment.statistics.agreement import Confusion

MONDAY = date(2026, 11, 2)
FIRST = JudgeName(1, "a", "direct", 1, "small")
SECOND = JudgeName(2, "b", "direct", 2, "small")


def day(number: int) -> date:
    return MONDAY + timedelta(days=number)


def cells(days: range, *, run: int = 1, topic: int = 1, passed: int = 8, failed: int = 2) -> list[Cell]:
    return [Cell.of_counts(day(n), topic, run, passed + failed, passed, failed) for n in days]


def line(
    *given: Cell,
    step: Step = Step.WEEK,
    sizes: dict[int, int] | None = None,
    versions: tuple[Mark, ...] = (),
    curated: dict[int, Confusion] | None = None,
) -> Series:
    days = {cell.day for cell in given}
    return series(
        given,
        judges={1: FIRST, 2: SECOND},
        sizes=FrameSizes(by_day={one: sizes or {1: 100} for one in days}),
        step=step,
        versions=versions,
        curated=curated,
    )


def test_a_week_is_one_point_weighted_by_day_and_topic() -> None:
    found = line(*cells(range(2)), *cells(range(2), topic=2, passed=2, failed=8), sizes={1: 300, 2: 100})
    (point,) = found.points
    assert (point.first, point.last, point.days, point.judged, point.chats) == (day(0), day(6), 2, 40, 800)
    assert point.uncorrected.estimate.value == pytest.approx(0.8 * 0.75 + 0.2 * 0.25)


def test_a_new_prompt_within_a_week_starts_a_new_point_and_breaks_the_line() -> None:
    found = line(*cells(range(9)), *cells(range(9, 14), run=2))
    assert [(point.first, point.segment) for point in found.points] == [(day(0), 0), (day(7), 0), (day(9), 1)]
    assert found.marks == (Mark(day(9), "New prompt version 2"),)
    assert found.change is None


def test_a_new_version_of_the_bot_breaks_the_line_at_its_week() -> None:
    found = line(*cells(range(21)), versions=(Mark(day(10), "Bot 5.2", of_judge=False),))
    assert [point.segment for point in found.points] == [0, 1, 1]


def test_a_small_topic_without_a_judged_chat_is_left_out_and_a_large_one_leaves_no_rate() -> None:
    (small,) = line(*cells(range(2)), sizes={1: 100, 2: 10}).points
    assert small.uncorrected.estimate.value == pytest.approx(0.8)
    assert small.covered == pytest.approx(100 / 110)
    (large,) = line(*cells(range(2)), sizes={1: 100, 2: 20}).points
    assert large.uncorrected.reason is Reason.UNSAMPLED


def test_of_a_day_the_judge_with_the_most_chats_counts_and_of_its_topics_the_largest_run() -> None:
    judges = {1: FIRST, 2: FIRST, 3: SECOND}
    given = [*cells(range(1), passed=5), *cells(range(1), run=2), *cells(range(1), run=3, passed=6, failed=0)]
    assert [cell.run for cell in chosen_cells(given, judges)] == [2]


def test_a_line_is_corrected_as_a_whole_or_not_at_all() -> None:
    table = Confusion(tp=90, fn=10, fp=5, tn=45)
    given = [*cells(range(7)), *cells(range(7, 14), run=2)]
    assert line(*given, curated={1: table, 2: table}).is_corrected
    half = line(*given, curated={1: table})
    assert not half.is_corrected
    assert half.points[0].corrected.estimate.value is not None
    assert half.shown(half.points[0]) is half.points[0].uncorrected
