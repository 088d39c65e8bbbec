"""Template tags of all pages: figures, times, progress bars, safe display of untrusted text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.contrib.messages import get_messages
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeData, SafeString, mark_safe

from common import plots, safe_text

register = template.Library()


def pick(holder: Any, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None where it is missing."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def pick_path(holder: Any, path: str) -> Any:
    """Follow a dotted path, e.g. `owner.name`; None where a step is missing."""
    for name in path.split("."):
        holder = pick(holder, name)
    return holder


def estimate(statistic: Any) -> plots.Estimate:
    """Convert {"value", "low", "high"}, a number or None to an estimate."""
    if statistic is None or isinstance(statistic, int | float):
        return plots.Estimate(statistic)
    return plots.Estimate(pick(statistic, "value"), pick(statistic, "low"), pick(statistic, "high"))


# ---------- figures ----------


@register.filter
def number(value: float | str | None, reason: str = "") -> SafeString:
    """Format with two decimals and a true minus sign; an undefined value is a dash titled with the reason."""
    if value is None or isinstance(value, str):  # NB: templates pass "" for an unknown name
        return format_html('<span class="dim" title="{}">–</span>', reason or "Undefined")
    return mark_safe(plots.figure(value))  # noqa: S308 - digits only


@register.filter
def interval(statistic: Any) -> str:
    """Format the 95% interval; '' where there is none. “to” replaces the dash beside a minus sign."""
    bounds = estimate(statistic or None)
    if bounds.low is None or bounds.high is None:
        return ""
    low, high = number(bounds.low), number(bounds.high)
    return f"{low} to {high}" if "−" in low else f"{low}–{high}"


@register.filter
def percent(value: float | str | None) -> SafeString:
    """Format a share as whole percent."""
    if value is None or isinstance(value, str):
        return number(None)
    return mark_safe(f"{100 * value:.0f}%")  # noqa: S308 - digits only


@register.filter
def count(value: int | str | None, style: str = "") -> SafeString:
    """Format a count with thousands separators; None is a dash; `quiet` dims a zero."""
    if value is None or isinstance(value, str):
        return number(None, "Not counted")
    if style == "quiet" and not value:
        return mark_safe('<span class="dim">0</span>')
    return mark_safe(f"{value:,}")  # noqa: S308 - digits only


@register.filter
def readable(key: Any) -> str:
    """Make a key readable: `answer_correctness` → Answer correctness."""
    text = str(key).replace("_", " ")
    return text[:1].upper() + text[1:]


@register.filter
def moment(value: datetime | str | None, style: str = "%-d %b %Y, %H:%M") -> str:
    """Format a time or its ISO text; other text stays unchanged."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return str(value)
    if value and timezone.is_aware(value):
        value = timezone.localtime(value)
    return value.strftime(style) if value else ""


@register.simple_tag
def between(forloop: Mapping[str, Any]) -> str:
    """Return the separator after an item of a loop, for “a, b and c”."""
    return " and " if forloop["revcounter"] == 2 else "" if forloop["last"] else ", "


# ---------- untrusted text ----------


@register.filter
def visible(text: Any) -> SafeString:
    """Escape plain text and show hidden characters."""
    return mark_safe(safe_text.visible(str(text or "")))  # noqa: S308 - escaped there


@register.filter
def markdown(text: Any) -> SafeString:
    """Render Markdown as sanitised HTML."""
    return mark_safe(safe_text.markdown(str(text or "")))  # noqa: S308 - sanitised there


# ---------- plots and fragments ----------


@register.inclusion_tag("common/_progress.html")
def progress(done: int, total: int, failed: int = 0, mine: bool = False) -> dict[str, Any]:
    """Draw a progress bar: the reader's own work in blue, other work in ink; failures in red."""
    whole = max(total, 1)
    return {
        "done": done,
        "total": total,
        "failed": failed,
        "mine": mine,
        "done_width": f"{100 * min(done, whole) / whole:.2f}%",
        "failed_width": f"{100 * min(failed, whole) / whole:.2f}%",
    }


@register.inclusion_tag("common/_flashes.html", takes_context=True)
def flashes(context: Context) -> dict[str, Any]:
    """Show Django's messages; a tag, because pages of chats use the name `messages` for the transcript."""
    request = context.get("request")
    shown = [one.message for one in get_messages(request)] if request else []
    return {"flashes": [text if isinstance(text, SafeData) else visible(text) for text in shown]}


@register.simple_tag
def learn_more(page: str, heading: str = "", *, text: str = "Learn more") -> SafeString:
    """Link to a chapter of the docs by its path without ending and the anchor of a heading."""
    address = reverse("help_page", args=[page]) + (f"#{heading}" if heading else "")
    return format_html('<a href="{}">{}</a>', address, text)


# ---------- where a page is ----------


@register.simple_block_tag(takes_context=True)
def crumbs(context: Context, content: str) -> SafeString:
    """Draw the way to a page: the entry of the navigation that it belongs to, or Home, then the block's text.

    The block holds links and names with " / " between them; the last one is the page itself.
    """
    root = context.get("crumb_root")
    label, url = (root.label, root.url) if root else ("Home", reverse("home"))
    return format_html(
        '<nav class="crumbs" aria-label="Breadcrumbs"><a href="{}">{}</a> / {}</nav>',
        url,
        label,
        mark_safe(content.strip()),  # noqa: S308 - rendered by the template
    )
