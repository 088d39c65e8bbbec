"""Monitoring: quality in production over time, and the chats behind a point."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, cast
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from alignment.monitoring.core.series import Point, Step
from alignment.monitoring.queries.criterion import (
    CriterionProduction,
    criterion_production,
    failing_chats,
    failing_verdicts,
)
from alignment.monitoring.queries.document import HEAD, criterion_rows, overview_rows
from alignment.monitoring.queries.judged import WEEKS, Window, window_of
from alignment.monitoring.queries.lede import by_criterion, lede, standing_changes
from alignment.monitoring.queries.overview import CriterionLine, NamedLine, overview
from alignment.monitoring.queries.page import Address, Chart, chart, days_name, marked_weeks
from common.access import permission_or_404
from common.downloads import table_file
from labeling.models.chats import Topic
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit

CHATS_A_PAGE = 20
ON_HOME = 6  # criteria in the panel
Marks = Mapping[int, Collection[date]]


def _window(request: HttpRequest) -> Window | None:
    return window_of(request.GET.get("step", ""), request.GET.get("weeks", ""), user=request.user)


def _about(window: Window | None) -> dict[str, Any]:
    return {"window": window, "steps": list(Step), "spans": WEEKS}


def _address(key: str, window: Window, topic: str = "") -> Address:
    """Where a point of a criterion leads: its page, with the chats of that point."""

    page = f"{reverse('monitoring:criterion', args=[key])}?{window.query}&point="
    end = (f"&{urlencode({'topic': topic})}" if topic else "") + "#chats"

    def url(point: Point) -> str:
        return f"{page}{point.first.isoformat()}{end}"

    return url


def _criterion_chart(line: CriterionLine, window: Window, marks: Marks) -> dict[str, Any]:
    row = line.criterion
    drawn = chart(
        line.series,
        window=window,
        key=row.key,
        name=row.name,
        url=_address(row.key, window),
        marked=marks.get(row.pk, ()),
    )
    return {"criterion": row, "chart": drawn}


def _small(lines: Sequence[NamedLine], window: Window, criterion: str = "") -> list[Chart]:
    return [
        chart(
            one.series,
            window=window,
            key=one.key,
            name=one.name,
            url=_address(criterion, window, one.key) if criterion else None,
        )
        for one in lines
    ]


@permission_or_404("labeling.see_judge")
@require_safe
def monitoring(request: HttpRequest) -> HttpResponse:
    """Show all criteria over time, session scores, coverage and cost."""
    window = _window(request)
    if window is None:
        return render(request, "alignment/monitoring/overview.html", _about(None))
    found = overview(window, user=request.user)
    score = chart(found.score, window=window, key="score", name="Session score")
    marks, standing = marked_weeks(window), standing_changes()
    changes = by_criterion(standing)
    context = _about(window) | {
        "found": found,
        "lede": lede([line.criterion.pk for line in found.lines], standing),
        "score": score,
        "rows": [
            _criterion_chart(line, window, marks) | {"change": changes.get(line.criterion.pk)}
            for line in found.lines
        ],
        "dimensions": _small(found.dimensions, window),
    }
    return render(request, "alignment/monitoring/overview.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def criterion(request: HttpRequest, key: str) -> HttpResponse:
    """Show one criterion over time, its topics and variants, and the failing chats of a point."""
    row = get_object_or_404(Criterion.objects.select_related("dimension"), key=key)
    window = _window(request)
    if window is None:
        return render(request, "alignment/monitoring/criterion.html", _about(None) | {"criterion": row})
    found = criterion_production(window, row, user=request.user, point=_day(request.GET.get("point", "")))
    topic = _topic(request.GET.get("topic", ""), (one.topic for one in found.at_point))
    verdicts = failing_verdicts(found, topic=topic.key if topic else "", user=request.user)
    page = Paginator(verdicts, CHATS_A_PAGE).get_page(request.GET.get("page"))
    context = _about(window) | {
        "criterion": row,
        "found": found,
        "chart": chart(
            found.series,
            window=window,
            key=key,
            name=row.name,
            url=_address(key, window),
            marked=marked_weeks(window).get(row.pk, ()),
        ),
        "topics": _small(found.topics, window, key),
        "topic": topic,
        "at": _at(found),
        "page_obj": page,
        "chats": failing_chats(list(page)),
    }
    return render(request, "alignment/monitoring/criterion.html", context)


@permission_or_404("labeling.manage_labeling")
@permission_or_404("labeling.see_judge")
@require_safe
def home_panel(request: HttpRequest) -> HttpResponse:
    """Show the newest rates that fell the most: a part of a lead's Home."""
    window = window_of(user=request.user)
    if window is None:
        return HttpResponse()
    found = overview(window, user=request.user)
    rows = [_criterion_chart(line, window, {}) for line in found.lines]
    rows.sort(key=lambda one: one["chart"].series.change or 0.0)
    score = chart(found.score, window=window, key="score", name="Session score")
    context = {"window": window, "found": found, "score": score, "rows": rows[:ON_HOME]}
    return render(request, "alignment/monitoring/_home.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def rates_csv(request: HttpRequest) -> HttpResponse:
    """Return the points of all charts, one a row."""
    window = _window(request)
    found = overview(window, user=request.user) if window else None
    audit(actor=cast(User, request.user), verb="rates exported", obj=Workspace.current(), format="csv")
    return table_file(overview_rows(found), HEAD, name="monitoring.csv")


@permission_or_404("labeling.see_judge")
@require_safe
def criterion_csv(request: HttpRequest, key: str) -> HttpResponse:
    """Return the points of a criterion and its topics, one a row."""
    row, window = get_object_or_404(Criterion, key=key), _window(request)
    lines = criterion_rows(criterion_production(window, row, user=request.user)) if window else iter(())
    audit(actor=cast(User, request.user), verb="rates exported", obj=row, criterion=key, format="csv")
    return table_file(lines, HEAD, name=f"monitoring-{key}.csv")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _topic(key: str, topics: Iterable[Topic]) -> Topic | None:
    return next((topic for topic in topics if topic.key == key), None)


def _at(found: CriterionProduction) -> str:
    point = found.point
    return days_name(point.first, point.last, found.window.step) if point else ""
