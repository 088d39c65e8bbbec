"""The table of a report's page: rows with one next step, tabs, filters and totals, each with its address."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any
from urllib.parse import urlencode

from django.utils.text import capfirst

from alignment.reports.core.priorities import first_criteria
from alignment.reports.core.table_view import (
    EVERY_ROW,
    LISTS,
    STATUSES,
    TABS,
    TABS_OF_RATERS,
    Column,
    Row,
    TableView,
    shared_sentences,
    shown_status,
)
from alignment.reports.queries.chat_lists import DISAGREEMENTS
from alignment.reports.queries.next_steps import Step
from alignment.reports.queries.reports import POLICY

NO_ACTION = Step("no action needed")


@dataclass(frozen=True, slots=True)
class Link:
    """A choice of the address, such as a tab or a filter; `count`: the rows that it leaves."""

    key: str
    label: str
    url: str
    current: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column, the address that sorts by it, and its `aria-sort`."""

    column: Column
    url: str
    direction: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one report's page; `base` holds the filters of the report, "?" included."""

    view: TableView
    base: str

    def to(self, anchor: str = "report-view", **changes: str) -> str:
        """Return the address of this view with these changes."""
        chosen = urlencode(self.view.query(**changes))
        joined = "&".join(part for part in (self.base.removeprefix("?"), chosen) if part)
        return f"?{joined}#{anchor}"


def report_table(
    report: Mapping[str, Any], criteria: Sequence[Row], query: Mapping[str, str], *, base: str
) -> dict[str, Any]:
    """Return the context of table, tabs and filters of a report's page.

    Parameters
    ----------
    criteria : the criteria of the report with names and next steps.
    query : the query string.
    base : the filters of the report as a query string, "?" included.
    """
    judged = report["judge"] is not None
    shared = shared_sentences(criteria)
    rows = [_row(one, shared) for one in criteria]
    view = TableView.read(query, rows, judged=judged)
    to = Addresses(view, base)
    statuses = Counter(shown_status(row) for row in rows)
    shows_lists = view.shown_tab in LISTS
    return {
        "view": view,
        "rows": [_placed(row, to) for row in view.ordered(rows)],
        "heads": [
            Head(one, to.to(sort=view.next_sort(one), tab=""), view.direction(one)) for one in view.columns
        ],
        "report_tabs": list(_tabs(to)),
        "tally": [
            Link(key, words, to.to(tab="", status=key), view.status == key, statuses[key])
            for key, words in STATUSES.items()
            if statuses[key]
        ],
        "status_chips": _status_chips(rows, to) if shows_lists else [],
        "dimension_chips": _dimension_chips(report, rows, to) if shows_lists else [],
        "next_criteria": first_criteria(rows) if judged else [],
        "shared": [(words, [row["name"] for row in found]) for words, found in shared.items()],
        "every_row_open": view.open == EVERY_ROW,
        "every_row_url": to.to(open="" if view.open == EVERY_ROW else EVERY_ROW),
        "tab_urls": {link.key: link.url.partition("#")[0] for link in _tabs(to)},
        "totals": _totals(report, criteria) if judged else {},
    }


def _row(entry: Row, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a criterion with what its line says: one next step, disagreements, rates below the required."""
    table = entry["confusion"]
    step = _step(entry)
    sentences = dict.fromkeys((*entry["reasons"], *entry["cautions"]))
    return {
        **entry,
        "shown_status": shown_status(entry),
        "disagreements": table["fn"] + table["fp"] if table else None,
        "differing_cells": [cell for cell in ("fn", "fp") if table and table[cell]],
        "step": step,
        "step_words": step.brief if step else None,
        "low": [name for name in ("tpr", "tnr") if _is_low(entry[name])],
        "own_sentences": [one for one in sentences if one not in shared],
        "shared_sentences": [one for one in sentences if one in shared],
    }


def _step(entry: Row) -> Step | None:
    """Return the most important step; a criterion for information only needs none."""
    if entry["status"] and entry["tier"] == "subjective":
        return NO_ACTION
    return next(iter(entry["next_steps"]), NO_ACTION if entry["status"] else None)


def _is_low(rate: Mapping[str, Any] | None) -> bool:
    return rate is not None and rate["value"] is not None and rate["value"] < POLICY.minimum_rate


def _placed(row: Row, to: Addresses) -> dict[str, Any]:
    """Return a row with what the view decides: whether it is shown and open, and the address to open it."""
    is_open = to.view.is_open(row)
    toggle = to.to(f"r-{row['key']}", open="" if is_open else row["key"])
    return {
        **row,
        "filtered": not to.view.shows(row),
        "open": is_open,
        "toggle_url": toggle,
        "disagreements_url": _disagreements_url(row, to),
    }


def _disagreements_url(row: Row, to: Addresses) -> str:
    """Return the address of the chats, or of the matrix where each rater is compared."""
    differing = row["differing_cells"]
    cell = differing[0] if len(differing) == 1 else DISAGREEMENTS
    if cell in row["cells"]:
        return str(row["cells"][cell])
    return to.to(f"c-{row['key']}", tab="matrices", open="")


def _tabs(to: Addresses) -> Iterator[Link]:
    for key in TABS if to.view.judged else TABS_OF_RATERS:
        url = to.to(tab="" if key == "criteria" else key, open="")
        yield Link(key, TABS[key], url, key == to.view.shown_tab)


def _status_chips(rows: Sequence[Row], to: Addresses) -> list[Link]:
    """Return the filters by status with the rows that each leaves; none if there is no choice."""
    left = [row for row in rows if not to.view.dimension or row["dimension"] == to.view.dimension]
    counts = Counter(shown_status(row) for row in left)
    present = {shown_status(row) for row in rows}
    chips = [
        Link(key, words, to.to(status=key), to.view.status == key, counts[key])
        for key, words in STATUSES.items()
        if key in present
    ]
    return (
        [Link("", "All statuses", to.to(status=""), not to.view.status, len(left)), *chips] if chips else []
    )


def _dimension_chips(report: Mapping[str, Any], rows: Sequence[Row], to: Addresses) -> list[Link]:
    """Return the filters by dimension with the rows that each leaves; none if there is no choice."""
    left = [row for row in rows if not to.view.status or shown_status(row) == to.view.status]
    counts = Counter(row["dimension"] for row in left)
    names = {row["key"]: row["name"] for row in report["dimensions"]}
    chips = [
        Link(
            key,
            names.get(key) or capfirst(key.replace("_", " ")),
            to.to(dimension=key),
            to.view.dimension == key,
            counts[key],
        )
        for key in dict.fromkeys(row["dimension"] for row in rows)
    ]
    every = Link("", "All dimensions", to.to(dimension=""), not to.view.dimension, len(left))
    return [every, *chips] if len(chips) > 1 else []


def _totals(report: Mapping[str, Any], criteria: Sequence[Row]) -> dict[str, Any]:
    """Return the figures under the table and above it: means over criteria, and sums of chats."""
    ceilings = [
        one["value"] for row in criteria if (one := row["human"]["ceiling"]) and one["value"] is not None
    ]
    compared, without = report["overall"]["n"], sum(row["no_verdict"] or 0 for row in criteria)
    differ = report["disagreements_total"]
    return {
        **report["overall"],
        "human": {"ceiling": {"value": fmean(ceilings)} if ceilings else None},
        "disagreements": differ,
        "disagreement_share": differ / compared if compared else None,
        "no_verdict": without,
        "no_verdict_share": without / (compared + without) if compared + without else None,
    }
