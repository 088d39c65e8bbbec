"""Template tags for runs: money, time, roles."""

from decimal import Decimal

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from common.templatetags.display import number
from evaluation.engines.core.roles import NAMES
from evaluation.runs.queries import run_page

register = template.Library()


@register.filter
def usd(value: float | Decimal | str | None) -> SafeString:
    """Return US dollars in cents, or with four decimals below ten cents; a dash for an unknown cost."""
    if value is None or isinstance(value, str):
        return number(None, "No price is known for this model")
    if 0 < value < Decimal("0.00005"):
        return mark_safe("&lt; $0.0001")
    shown = f"{value:,.2f}" if value == 0 or value >= Decimal("0.1") else f"{value:.4f}"
    return mark_safe(f"${shown}")  # noqa: S308 - digits only


@register.filter
def in_words(error: str) -> str:
    """Return an error line with its outcome in words."""
    return run_page.in_words(error)


@register.filter
def duration(seconds: float | str | None) -> str:
    """Return a duration in words, rounded; "" for none."""
    if seconds is None or isinstance(seconds, str):
        return ""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 10:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


@register.simple_tag
def budget_bar(share: float) -> SafeString:
    """Return the spent share of a budget as a bar; the number is beside it."""
    return format_html(
        '<svg class="bar" aria-hidden="true"><rect class="{}" width="{}%" height="8"/></svg>',
        "bad" if share >= 1 else "done",
        f"{100 * share:.2f}",
    )


@register.filter
def role_name(role: str) -> str:
    """Return the name of a judge's role as pages show it."""
    return NAMES.get(role, role)
