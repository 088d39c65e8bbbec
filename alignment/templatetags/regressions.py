"""Cells and statistics of a regression test's page."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from alignment.regression.core import no_verdict_words
from common.templatetags.display import count, interval, number

register = template.Library()

CELLS = {"still_right": "still right", "broken": "broken", "fixed": "fixed", "still_wrong": "still wrong"}
MARKED = ("broken", "fixed")  # cells in which the judges differ


@register.simple_tag
def change_cell(criterion: Any, cell: str) -> SafeString:
    """Show one cell of the paired table, with a link if the chats are visible."""
    inside = format_html("<b>{}</b><span>{}</span>", count(criterion[cell]), CELLS[cell])
    css = "off" if cell in MARKED else ""
    url = criterion["cells"].get(cell)
    if not url:
        return format_html('<td class="{}"><div>{}</div></td>', css, inside)
    zero = "" if criterion[cell] else "zero"
    return format_html('<td class="{}"><a class="{}" href="{}">{}</a></td>', css, zero, url, inside)


@register.inclusion_tag("alignment/regression/_confusion.html")
def confusion(judge: Any, name: str, passes_when: bool) -> dict[str, Any]:
    """Show the confusion matrix of one judge."""
    return {"judge": judge, "name": name, "passes_when": passes_when}


@register.filter
def no_verdict(judge: Any) -> str:
    """Return the number of answers without True or False of one judge, by state."""
    return no_verdict_words(judge)


@register.filter
def interval_title(statistic: Any) -> str:
    """Return the 95% interval of a statistic, or the reason why it has none."""
    return statistic["why"] if statistic["low"] is None else f"95% interval {interval(statistic)}"


@register.filter
def percents(estimate: Any) -> str:
    """Format the 95% interval of a share in whole percent; '' without one."""
    if estimate["low"] is None or estimate["high"] is None:
        return ""
    return f"{100 * estimate['low']:.0f} to {100 * estimate['high']:.0f}%"


@register.filter
def points_changed(value: float | str | None) -> SafeString:
    """Format a change in percentage points with its sign."""
    if value is None or isinstance(value, str):
        return number(None)
    return SafeString(f"{value:+.1f} pts".replace("-", "−"))


@register.filter
def as_points(share: float | str | None) -> SafeString:
    """Format a share as percentage points with its sign."""
    if share is None or isinstance(share, str):
        return number(None)
    return SafeString(f"{100 * share:+.1f}".replace("-", "−"))
