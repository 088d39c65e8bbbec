"""Rows of the tables beside monitoring's charts: a page has a thousand of them, too many for a template."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from alignment.monitoring.core.corrected_rates import Rate
from alignment.monitoring.queries.page import Chart, ChartRow
from common.templatetags.display import count, interval, number, visible

register = template.Library()
BELOW = mark_safe('<small class="warned">below baseline</small>')


@register.simple_tag
def chart_rows(chart: Chart) -> SafeString:
    """Render a row for each point; the script draws the chart's lines from their data attributes."""
    return format_html_join("", "{}", ((_row(row),) for row in chart.rows))


def _row(row: ChartRow) -> SafeString:
    point, rates = row.point, row.point.rates
    corrected = rates.corrected
    name = format_html('<a href="{}">{}</a>', row.url, row.name) if row.url else row.name
    prompt = point.judge.prompt
    return format_html(
        '<tr data-at="{}" data-value="{}" data-low="{}" data-high="{}" data-part="{}"{} data-n="{}">'
        '<th scope="row">{} {}</th><td class="num">{}</td><td class="num">{}</td>'
        '<td class="num">{} of {}</td><td><span class="j">{}</span> {}</td></tr>',
        *(row.at, row.value, row.low, row.high, point.segment),
        mark_safe(' data-below="1"') if row.marked else "",
        count(point.judged),
        name,
        BELOW if row.marked else "",
        _rate(rates.uncorrected),
        _rate(corrected, "" if corrected.estimate.value is None else corrected.short_name),
        count(point.judged),
        count(point.chats),
        visible(point.judge.name),
        format_html("<small>prompt version {}</small>", prompt) if prompt else "",
    )


def _rate(rate: Rate, method: str = "") -> SafeString:
    found = rate.estimate
    return format_html(
        "{} <small>{} {}</small>", number(found.value, found.reason or ""), interval(found.interval), method
    )
