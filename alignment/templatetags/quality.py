"""Statistics and small plots of the quality pages."""

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
    """Convert an estimate for the plots."""
    if estimate.interval is None:
        return plots.Estimate(estimate.value)
    return plots.Estimate(estimate.value, estimate.interval.low, estimate.interval.high)


@register.simple_tag
def figure(estimate: Estimate) -> SafeString:
    """Show a value above its interval; the title gives the reason if either is missing."""
    if estimate.value is None:
        return number(None, estimate.reason)
    title = "; ".join(part for part in (estimate.flag, estimate.reason) if part)
    value = format_html('<span title="{}">{}</span>', title, number(estimate.value)) if title else None
    return format_html("{}<small>{}</small>", value or number(estimate.value), interval(plotted(estimate)))


@register.inclusion_tag("common/_plot.html")
def share_plot(agreement: Agreement, everybody: float | None) -> dict[str, Any]:
    """Plot a rater's agreement as a dot; the tick is the agreement of all raters."""
    lane = plots.Lane(
        "Agreement",
        plotted(agreement.share),
        css="people",
        circle=True,
        big=not agreement.few,
        tick=plots.Estimate(everybody),
        tick_name="all raters",
    )
    return {"plot": plots.plot([lane])}


@register.inclusion_tag("alignment/rater_quality/_trend.html")
def trend_plot(trend: Sequence[Estimate]) -> dict[str, Any]:
    """Plot agreement by tenths, oldest left."""
    return {"trend": plots.trend([plotted(part) for part in trend])}
