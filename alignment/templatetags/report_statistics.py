"""Tables of a report's statistics, after the registry; the correction of a pass rate in words."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from alignment.reports.core.registry import BY_KEY, Statistic, Table, columns
from alignment.reports.core.sensitivity import RATES as RATES_BETWEEN
from alignment.templatetags.statistics import REMEMBERED, shown_value, stat
from common.plots import Estimate
from common.templatetags.display import count, estimate, interval, number, pick, readable

register = template.Library()

METHODS = {
    "ppi": "PPI++, random labels",
    "rogan_gladen": "Rogan–Gladen",
    "weighting": "Weighting, labels sampled by verdict",
}
RATES = {"human": "human", "judge_corrected": "corrected"}
# Marks of the raters' and the judge's values where a table has both.
MARKS = {
    "human.ceiling": "p",
    "pass_rate.human": "p",
    "pass_rate.judge": "j",
    "pass_rate.judge_corrected": "j",
}


@register.simple_tag
def statistic_heads(table: str) -> SafeString:
    """Return the head cells of a table of the registry; each explains its statistic when pointed at."""
    shown = columns(Table(table))
    marked = len({one.part for one in shown}) > 1 or table == Table.RATES
    heads = ((MARKS.get(one.key, "") if marked else "", one) for one in shown)
    return format_html_join("\n", '<th scope="col" class="num">{}</th>', ((_head(*head),) for head in heads))


def _head(mark: str, statistic: Statistic) -> SafeString:
    if mark:
        return format_html('<abbr class="{}" title="{}">{}</abbr>', mark, statistic.help, statistic.head)
    return format_html('<abbr title="{}">{}</abbr>', statistic.help, statistic.head)


@register.simple_tag
def statistic_cells(row: Mapping[str, Any], table: str) -> SafeString:
    """Return a criterion's cells in a table of the registry: each value, its interval below."""
    return format_html_join("\n", "{}", ((_cell(row, one),) for one in columns(Table(table))))


@register.simple_tag
def statistic_terms(row: Mapping[str, Any], table: str) -> SafeString:
    """Return a criterion's statistics of a table as terms and values of a list."""
    terms = ((_head("", one), _value(row, one)) for one in columns(Table(table)))
    return format_html_join("\n", "<div><dt>{}</dt><dd>{}</dd></div>", terms)


@register.simple_tag
def accuracy_line(row: Mapping[str, Any]) -> SafeString:
    """Show the judge's accuracy beside that of the most frequent answer; '' if one is missing."""
    constant, accuracy = row.get("most_frequent_accuracy"), row.get("accuracy")
    if constant is None or not accuracy or accuracy["value"] is None:
        return SafeString("")
    return format_html(
        '<p class="reference" title="{}">Accuracy {}, most frequent answer {}, n = {}</p>',
        BY_KEY["most_frequent_accuracy"].help,
        number(accuracy["value"]),
        number(constant),
        count(row["n"]),
    )


def _cell(row: Mapping[str, Any], statistic: Statistic) -> SafeString:
    if statistic.decimals:
        found = statistic.of(row)
        reason = pick(row.get("undefined"), statistic.key) or (statistic.undefined if found is None else "")
        return _estimate_cell(estimate(found), reason, pick(found, "flag") or "")
    value = _value(row, statistic)
    if statistic.key != "no_verdict":
        return format_html('<td class="num">{}</td>', value)
    by_state = ((count(chats), readable(state).lower()) for state, chats in _states(row))
    return format_html(
        '<td class="num">{}{}</td>', value, format_html_join("", "<small>{} {}</small>", by_state)
    )


@lru_cache(maxsize=REMEMBERED)
def _estimate_cell(value: Estimate, reason: str, flag: str) -> SafeString:
    return format_html(
        '<td class="num">{}<small>{}</small></td>', shown_value(value, reason, flag), interval(value)
    )


def _states(row: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(state, chats) for state, chats in (row["no_verdict_by"] or {}).items() if chats]


def _value(row: Mapping[str, Any], statistic: Statistic) -> SafeString:
    value = statistic.of(row)
    if statistic.decimals == 0:
        return count(value, "quiet" if not statistic.part and statistic.key != "n" else "")
    if value is None:
        reason = pick(pick(row, "undefined"), statistic.key) or statistic.undefined
        return number(None, reason or "Not computed here")
    return stat(row, statistic.key)


@register.inclusion_tag("alignment/reports/_sensitivity.html")
def sensitivity(criteria: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tabulate the worst and the best case of criteria with unresolved chats; a single one is not named."""
    single = isinstance(criteria, Mapping)
    several = [criteria] if isinstance(criteria, Mapping) else criteria
    rows = [
        {
            "name": pick(row, "name") or pick(pick(row, "pinned"), "name"),
            "chats": found["chats"],
            "cells": [(found["worst"][rate], found["best"][rate]) for rate in RATES_BETWEEN],
        }
        for row in several
        if (found := row.get("sensitivity"))
    ]
    return {"rows": rows, "named": not single}


@register.filter
def any_corrected(criteria: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a pass rate of these criteria is corrected by a known method."""
    return any(row.get("corrected_by") for row in criteria)


@register.filter
def correction(method: str | None) -> str:
    """Return the method's name; '' without one, and in reports stored before methods were recorded."""
    return METHODS.get(method or "", "")


@register.filter
def narrower(rates: Mapping[str, Any]) -> str:
    """Return which interval is narrower, human or corrected; '' if one is missing, flagged or equal."""
    widths = {
        words: rate["high"] - rate["low"]
        for name, words in RATES.items()
        if (rate := rates[name]) and rate["low"] is not None and "flag" not in rate
    }
    if len(widths) < len(RATES) or len(set(widths.values())) == 1:
        return ""
    return min(widths, key=lambda words: widths[words])
