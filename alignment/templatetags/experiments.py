"""Differences of shares in percentage points."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def points(value: float | str | None, reason: str = "") -> SafeString:
    """Format a difference of shares in points, with its sign; an undefined one is a dash titled with why.

    >>> points(0.0123), points(-0.2)
    ('+1.2', '−20.0')
    """
    if value is None or isinstance(value, str):
        return format_html('<span class="dim" title="{}">–</span>', reason or "Undefined")
    return mark_safe(f"{100 * value:+.1f}".replace("-", "−"))  # noqa: S308 - digits only


@register.filter
def points_size(value: float | str | None, reason: str = "") -> SafeString:
    """Format the size of a difference in points, without a sign.

    >>> points_size(0.0123)
    '1.2'
    """
    if value is None or isinstance(value, str):
        return points(None, reason)
    return mark_safe(f"{100 * abs(value):.1f}")  # noqa: S308 - digits only


@register.filter
def points_interval(estimate: Any) -> str:
    """Format the interval of a difference in points; '' where there is none."""
    interval = getattr(estimate, "interval", None)
    return f"{points(interval.low)} to {points(interval.high)}" if interval else ""
