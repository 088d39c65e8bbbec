"""How a reader looks at a report: tab, filters, order and open rows, as the address has them."""

from typing import Any

import pytest

from alignment.reports.core.table_view import EVERY_ROW, TableView, shared_sentences


def row(key: str, tpr: float | None = 0.9, **more: Any) -> dict[str, Any]:
    """A criterion of a report's JSON with what its line on the page adds."""
    fixed = {
        "name": key.title(),
        "dimension": "tone",
        "tier": "simple",
        "critical": False,
        "status": "aligned",
        "n": 100,
        "balanced_accuracy": {"value": 0.9},
        "tpr": {"value": tpr},
        "tnr": {"value": 0.9},
        "human": {"krippendorff_alpha": {"value": 0.6}, "percent_agreement": 0.8},
        "disagreements": 3,
        "step_words": "use it for monitoring",
        "reasons": [],
        "cautions": [],
    }
    return {"key": key, **fixed, **more}


ROWS = [
    row("kind", 0.95),
    row("lost", None, status="not_enough_labels", disagreements=None),
    row("rude", 0.7, status="not_aligned", disagreements=30),
    row("tasteful", 0.5, tier="subjective", status="not_aligned", dimension="taste"),
]


def read(**query: str) -> TableView:
    return TableView.read(query, ROWS, judged=True)


def keys(view: TableView) -> list[str]:
    return [one["key"] for one in view.ordered(ROWS)]


def column(view: TableView, key: str) -> Any:
    return next(one for one in view.columns if one.key == key)


def test_without_a_choice_the_worst_open_criteria_come_first() -> None:
    assert keys(read()) == ["rude", "lost", "kind", "tasteful"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("tpr", ["tasteful", "rude", "kind", "lost"]),
        ("-tpr", ["kind", "rude", "tasteful", "lost"]),
        ("-differ", ["rude", "kind", "tasteful", "lost"]),
        ("name", ["kind", "lost", "rude", "tasteful"]),
    ],
)
def test_any_column_sorts_in_both_directions_and_what_is_undefined_comes_last(
    sort: str, order: list[str]
) -> None:
    assert keys(read(sort=sort)) == order


@pytest.mark.parametrize("judged", [True, False])
def test_every_column_sorts(judged: bool) -> None:
    rows = [one | {"prevalence": 0.5} for one in ROWS]
    for one in rows:
        one["human"] = one["human"] | {"gwet_ac1": 0.7, "raters": 3, "overlap": 20}
    for each in TableView(judged).columns:
        view = TableView.read({"sort": each.key}, rows, judged=judged)
        assert view.sort == each.key
        assert len(view.ordered(rows)) == len(rows)


def test_a_column_sorts_its_own_way_first_and_the_other_way_next() -> None:
    assert read().next_sort(column(read(), "tpr")) == "tpr"
    assert read(sort="tpr").next_sort(column(read(), "tpr")) == "-tpr"
    assert read().next_sort(column(read(), "differ")) == "-differ"
    assert read(sort="-differ").next_sort(column(read(), "differ")) == "differ"


def test_the_direction_is_what_a_screen_reader_says() -> None:
    assert read().direction(column(read(), "")) == "other"
    assert read(sort="tpr").direction(column(read(), "tpr")) == "ascending"
    assert read(sort="-tpr").direction(column(read(), "tpr")) == "descending"
    assert read(sort="-tpr").direction(column(read(), "")) == ""


def test_filters_leave_the_rows_of_a_status_and_a_dimension() -> None:
    assert [one["key"] for one in ROWS if read(status="directional").shows(one)] == ["tasteful"]
    assert [one["key"] for one in ROWS if read(status="not_aligned").shows(one)] == ["rude"]
    assert not any(read(status="not_aligned", dimension="taste").shows(one) for one in ROWS)


def test_what_does_not_fit_the_report_is_left_out_of_the_address() -> None:
    nonsense = {"tab": "x", "status": "x", "dimension": "x", "sort": "x", "open": "x", "split": "dev"}
    assert read(**nonsense).query() == {}
    assert TableView.read({"tab": "matrices"}, ROWS, judged=False).shown_tab == "criteria"


def test_a_change_keeps_the_rest_of_the_address() -> None:
    view = read(tab="all", status="aligned", sort="-n")
    assert view.query(tab="") == {"status": "aligned", "sort": "-n"}


def test_one_row_or_every_row_is_open() -> None:
    assert [one["key"] for one in ROWS if read(open="rude").is_open(one)] == ["rude"]
    assert all(read(open=EVERY_ROW).is_open(one) for one in ROWS)


def test_a_sentence_of_three_criteria_is_folded_to_one() -> None:
    same, other = "human agreement unknown", "TPR 0.70 is below 0.80"
    rows = [one | {"cautions": [same]} for one in ROWS]
    rows[2]["reasons"] = [other]
    shared = shared_sentences(rows)
    assert {words: len(found) for words, found in shared.items()} == {same: 4}
