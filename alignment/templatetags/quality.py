"""Figures and small plots of the rater quality pages."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from alignment.rater_quality.core import Agreement
from alignment.statistics.estimates import Estimate
from common import plots
from common.templatetags.display import interval, number

register = template.Library()


def plotted(estimate: Estimate) -> plots.Estimate:
    """The estimate as the plots need it."""
    if estimate.interval is None:
        return plots.Estimate(estimate.value)
    return plots.Estimate(estimate.value, estimate.interval.low, estimate.interval.high)


@register.simple_tag
def figure(estimate: Estimate) -> SafeString:
    """The value with its interval below; the title explains a dash or a missing interval."""
    if estimate.value is None:
        return number(None, estimate.reason)
    title = "; ".join(part for part in (estimate.flag, estimate.reason) if part)
    value = format_html('<span title="{}">{}</span>', title, number(estimate.value)) if title else None
    return format_html("{}<small>{}</small>", value or number(estimate.value), interval(plotted(estimate)))


@register.inclusion_tag("common/_plot.html")
def share_plot(agreement: Agreement, everybody: float | None) -> dict[str, Any]:
    """A rater's agreement as a dot on a line; the tick is the agreement of all raters."""
    lane = plots.Lane("Agreement", plotted(agreement.share), "people", not agreement.few, everybody)
    return {"plot": plots.plot([lane])}


@register.inclusion_tag("alignment/rater_quality/_trend.html")
def course_plot(course: Sequence[Estimate]) -> dict[str, Any]:
    """Agreement over time in up to ten parts, oldest first."""
    return {"course": plots.course([plotted(part) for part in course])}
