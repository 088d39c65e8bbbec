"""Criteria: list and page with the prompt in force."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from evaluation.selectors.criteria import articles_of, criterion_rows, prompt_versions
from labeling.access import permission_or_404
from labeling.models.rubric import Criterion


@permission_or_404("labeling.see_judge")
def criterion_list(request: HttpRequest) -> HttpResponse:
    """Every criterion by dimension."""
    return render(request, "alignment/criterion_list.html", {"rows": criterion_rows()})


@permission_or_404("labeling.see_judge")
def criterion_detail(request: HttpRequest, key: str) -> HttpResponse:
    """One criterion: question, definition, prompt versions, knowledge."""
    criterion = get_object_or_404(Criterion.objects.select_related("dimension", "rubric"), key=key)
    context = {
        "criterion": criterion,
        "version": criterion.versions.latest("number"),
        "prompts": prompt_versions(criterion),
        "articles": articles_of([criterion])[criterion.pk],
    }
    return render(request, "alignment/criterion_detail.html", context)


def prompt_version(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """One version."""
    raise Http404
