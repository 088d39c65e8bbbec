"""Regression tests: all of them, and what one found."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from alignment.selectors.held_out import tell
from alignment.selectors.regressions import regression_page, regression_rows
from labeling.access import permission_or_404

PAGE = 50


@permission_or_404("labeling.see_judge")
def regression_list(request: HttpRequest) -> HttpResponse:
    """Every test, newest first."""
    page = Paginator(regression_rows(), PAGE).get_page(request.GET.get("page"))
    tell(list(page), user=request.user)
    active = any(test.is_open for test in page)
    return render(request, "alignment/regression_list.html", {"page_obj": page, "active": active})


@permission_or_404("labeling.see_judge")
def regression_detail(request: HttpRequest, test_id: int) -> HttpResponse:
    """One test: the gate's answer and the counts behind it; no chat is named."""
    test = get_object_or_404(regression_rows(), pk=test_id)
    tell([test], user=request.user)
    return render(request, "alignment/regression_detail.html", regression_page(test))
