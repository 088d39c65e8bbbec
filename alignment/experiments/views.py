"""Experiments: the list, one experiment with its rates and failing chats, and its settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from alignment.experiments.core.comparison import SequencePoint
from alignment.experiments.forms import ExperimentForm
from alignment.experiments.queries.pages import (
    VariantSequence,
    comparison,
    experiment_facts,
    experiments,
    failing_metrics,
    failing_of,
    sequences,
)
from alignment.experiments.services import ExperimentSettings, experiment_change
from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.models.people import User

EXPERIMENTS_A_PAGE = 50
CHATS_A_PAGE = 20


@permission_or_404("labeling.see_judge")
@require_safe
def experiment_list(request: HttpRequest) -> HttpResponse:
    """Show every experiment with its units and the sample-ratio check, newest first."""
    page = Paginator(experiments().order_by("-pk"), EXPERIMENTS_A_PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "rows": experiment_facts(list(page))}
    return render(request, "alignment/experiments/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def experiment(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Show rates and differences; of one criterion also its days and failing chats."""
    row = get_object_or_404(experiments(), pk=experiment_id)
    found = comparison(row, user=request.user)
    chosen = found.row_of(request.GET.get("criterion", ""))
    context: dict[str, Any] = {"found": found, "facts": found.facts, "chosen": chosen}
    if chosen is not None:
        names = [one.name for one in found.facts.variants]
        asked = request.GET.get("variant", "")
        variant = asked if asked in names else ""
        rows = failing_metrics(row, chosen.criterion, variant=variant, user=request.user)
        page = Paginator(rows, CHATS_A_PAGE).get_page(request.GET.get("page"))
        listed = list(page)
        context |= {
            "charts": [_chart(one) for one in sequences(found.facts, chosen)],
            "variant": variant,
            "page_obj": page,
            "chats": list(zip(listed, failing_of(listed), strict=False)),
        }
    return render(request, "alignment/experiments/detail.html", context)


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def experiment_settings(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Change control, expected shares, start and confidence."""
    row = get_object_or_404(experiments(), pk=experiment_id)
    variants = [one.variant for one in row.variants.all()]
    data = request.POST if request.method == "POST" else None
    form = ExperimentForm(data, current=ExperimentSettings.of(row), variants=variants)
    if request.method == "POST" and form.is_valid():
        try:
            experiment_change(row=row, settings=form.settings, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, "Saved. The experiment is counted again within a minute.")
            return redirect("experiments:detail", row.pk)
    return render(request, "alignment/experiments/settings.html", {"form": form, "row": row})


# ---------- charts


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A day's difference in points; `value`, `low` and `high` as text for the script, "" where undefined."""

    point: SequencePoint
    value: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A variant's differences; all corrected, or none."""

    sequence: VariantSequence
    rows: Sequence[ChartRow]
    is_corrected: bool

    @property
    def word(self) -> str:
        """Whether the line is corrected for the judge's errors."""
        return "corrected" if self.is_corrected else "uncorrected"


def _chart(one: VariantSequence) -> Chart:
    corrected = bool(one.points) and all(point.difference.is_corrected for point in one.points)
    return Chart(one, [_chart_row(point, corrected) for point in one.points], corrected)


def _chart_row(point: SequencePoint, corrected: bool) -> ChartRow:
    found = point.difference.corrected if corrected else point.difference.uncorrected
    bounds = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return ChartRow(point, *(_points(bound) for bound in (found.value, *bounds)))


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"
