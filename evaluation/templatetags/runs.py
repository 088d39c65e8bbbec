"""Template tags of pages that show runs: money, time, roles."""

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
    """US dollars: cents, or four decimals below ten cents; an unknown cost is a dash."""
    if value is None or isinstance(value, str):
        return number(None, "No price is known for this model")
    if 0 < value < Decimal("0.00005"):
        return mark_safe("&lt; $0.0001")
    shown = f"{value:,.2f}" if value == 0 or value >= Decimal("0.1") else f"{value:.4f}"
    return mark_safe(f"${shown}")  # noqa: S308 - digits only


@register.filter
def in_words(error: str) -> str:
    """An error line that begins with a request's outcome, in words."""
    return run_page.in_words(error)


@register.filter
def duration(seconds: float | str | None) -> str:
    """A length of time in words, as coarse as it may be; '' for none."""
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
    """How much of a budget is spent, as a bar; the figure stands beside it."""
    return format_html(
        '<svg class="bar" aria-hidden="true"><rect class="{}" width="{}%" height="8"/></svg>',
        "bad" if share >= 1 else "done",
        f"{100 * share:.2f}",
    )


@register.filter
def role_name(role: str) -> str:
    """A role of a judge under the name that pages give it."""
    return NAMES.get(role, role)
