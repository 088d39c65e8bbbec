"""Cells and figures of regression test pages."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.templatetags.display import count, number

register = template.Library()

CELLS = {"still_right": "still right", "broken": "broken", "fixed": "fixed", "still_wrong": "still wrong"}
MARKED = ("broken", "fixed")  # where the two versions differ


@register.simple_tag
def change_cell(criterion: Any, cell: str) -> SafeString:
    """One cell of the paired table; a link if the user may open its chats."""
    inside = format_html("<b>{}</b><span>{}</span>", count(criterion[cell]), CELLS[cell])
    css = "off" if cell in MARKED else ""
    url = criterion["cells"].get(cell)
    if not url:
        return format_html('<td class="{}"><div>{}</div></td>', css, inside)
    zero = "" if criterion[cell] else "zero"
    return format_html('<td class="{}"><a class="{}" href="{}">{}</a></td>', css, zero, url, inside)


@register.inclusion_tag("alignment/regression/_confusion.html")
def confusion(side: Any, name: str) -> dict[str, Any]:
    """Confusion matrix of the consensus × one judge."""
    return {"side": side, "name": name}


@register.filter
def percents(estimate: Any) -> str:
    """The 95% interval of a share as whole percent; '' without one."""
    if estimate["low"] is None or estimate["high"] is None:
        return ""
    return f"{100 * estimate['low']:.0f} to {100 * estimate['high']:.0f}%"


@register.filter
def points_changed(value: float | str | None) -> SafeString:
    """A change in percentage points, with its sign."""
    if value is None or isinstance(value, str):
        return number(None)
    return SafeString(f"{value:+.1f} pts".replace("-", "−"))


@register.filter
def as_points(share: float | str | None) -> SafeString:
    """A share as percentage points with its sign."""
    if share is None or isinstance(share, str):
        return number(None)
    return SafeString(f"{100 * share:+.1f}".replace("-", "−"))
