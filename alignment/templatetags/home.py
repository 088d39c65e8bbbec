"""Charts of Home: a sparkline over prompt versions, and a rater's chats by day."""

from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from alignment.home.core import BASE, HEIGHT, Bar, GlanceLine
from alignment.home.queries.rater import Pace

register = template.Library()


@register.simple_tag
def glance_plot(line: GlanceLine, name: str) -> SafeString:
    """Draw balanced accuracy by version; the newest version has the large mark."""
    ceiling = _line("ceil-h", "0", line.ceiling, "100%", line.ceiling) if line.ceiling is not None else ""
    links = format_html_join("", "{}", ((_line("link", *link),) for link in line.links))
    singles = format_html_join("", "{}", ((_dot("dot", *place),) for place in line.singles))
    return format_html(
        '<svg height="{}" role="img" aria-label="{}: balanced accuracy of {}">{}{}{}{}</svg>',
        HEIGHT,
        name,
        line.label,
        ceiling,
        links,
        singles,
        _dot("dot big", *line.newest),
    )


def _line(css: str, x1: str, y1: Any, x2: str, y2: Any) -> SafeString:
    return format_html('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>', css, x1, y1, x2, y2)


def _dot(css: str, x: str, y: float) -> SafeString:
    return format_html('<use class="{}" href="#d4" x="{}" y="{}"/>', css, x, y)


@register.simple_tag
def pace_plot(pace: Pace) -> SafeString:
    """Draw a bar for each day, with its number above and the day of the month below."""
    bars = format_html_join(
        "",
        '<rect class="lvl{}" x="{}" width="7%" y="{}" height="{}"/>'
        '<text class="tx mid" x="{}" y="{}">{}</text><text class="tx mid" x="{}" y="78">{}</text>',
        (_bar(bar, newest=bar is pace.bars[-1]) for bar in pace.bars),
    )
    return format_html(
        '<svg class="pace" role="img" aria-label="{}">'
        '<line class="gl base" x1="0" x2="100%" y1="{}" y2="{}"/>{}</svg>',
        pace.label,
        BASE,
        BASE,
        bars,
    )


def _bar(bar: Bar, *, newest: bool) -> tuple[Any, ...]:
    at = (" now" if newest else "", bar.x, bar.y, bar.height)
    return *at, bar.middle, bar.y - 6, bar.chats, bar.middle, bar.day.day
