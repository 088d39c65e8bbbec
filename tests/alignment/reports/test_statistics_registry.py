"""The registry of statistics: complete, documented, and the source of every table."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from alignment.reports.core.csv_rows import HEAD, column_of
from alignment.reports.core.judge_side import NAMES
from alignment.reports.core.registry import BY_KEY, SHOWN, STATISTICS, Statistic, Table, columns, measures
from alignment.reports.core.terminal_table import report_table
from alignment.templatetags.report_statistics import statistic_cells, statistic_heads, statistic_terms
from tests.factories.report_data import criterion, pairs, report

DOCS = Path(settings.BASE_DIR) / "docs/understand/statistics.md"


def section(anchor: str) -> str:
    """Return the text between the heading with this anchor and the next heading."""
    parts = re.split(r"^#+ (.+)$", DOCS.read_text("utf-8"), flags=re.M)
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    return next(text for name, text in named.items() if re.sub(r"\W+", "-", name.lower()) == anchor)


def one_criterion() -> dict[str, Any]:
    return report(criterion(*pairs(12, 2, 3, 9)))


@pytest.mark.parametrize("one", STATISTICS, ids=lambda one: one.key)
def test_every_statistic_is_documented_where_its_anchor_leads(one: Statistic) -> None:
    text = section(one.anchor).replace("'", "’").lower()
    assert f"`{one.key}`" in text or one.label.lower() in text


@pytest.mark.parametrize("one", STATISTICS, ids=lambda one: one.key)
def test_every_statistic_has_words_and_is_shown(one: Statistic) -> None:
    assert one.label and one.head and one.help
    assert any(one.key in keys for keys in SHOWN.values())


def test_every_key_is_in_the_json_of_a_report_and_the_json_has_no_other_measure() -> None:
    row = one_criterion()["criteria"][0]
    for one in STATISTICS:
        holder: Any = row[one.part] if one.part else row
        assert one.name in holder
    estimates = [name for name, value in row.items() if isinstance(value, dict) and "value" in value]
    assert estimates == list(NAMES)
    assert list(row["human"]) == ["raters", "overlap", *measures("human"), "gwet_ac1_interval"]
    assert list(row["pass_rate"]) == list(measures("pass_rate"))


def test_every_table_names_known_statistics_and_the_csv_has_all_of_them() -> None:
    assert set(SHOWN) == set(Table)
    assert {key for keys in SHOWN.values() for key in keys} == set(BY_KEY)
    assert {column_of(one) for one in STATISTICS} - {"human_raters", "human_overlap"} <= set(HEAD)
    assert {"raters", "overlap", "prevalence"} <= set(HEAD)


@pytest.mark.parametrize("table", [table for table in Table if not table.startswith(("csv", "terminal"))])
def test_a_table_has_a_cell_under_each_head(table: Table) -> None:
    row = one_criterion()["criteria"][0]
    assert statistic_heads(table).count("<th") == len(columns(table))
    assert (
        statistic_cells(row, table).count("<td")
        == statistic_terms(row, table).count("<dd")
        == len(columns(table))
    )


def test_the_terminal_has_the_columns_of_the_registry() -> None:
    about = {"set": "calibration", "split": None, "judge": None}
    body = one_criterion() | about | {"pinned": {"notices": ["some labels are automatic"]}}
    lines = report_table(body).splitlines()
    heads = [word for one in columns(Table.TERMINAL_RATERS) for word in one.head.split()]
    assert lines[1] == "Note: some labels are automatic."
    assert lines[2].split() == ["criterion", *heads]
    assert lines[4].split()[:2] == ["polite", str(body["criteria"][0]["n"])]
