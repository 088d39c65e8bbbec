"""Search from every page: the results page, and the list in the dialog."""

from typing import cast

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.search.registry import LONGEST_QUERY, search

IN_DIALOG = 5
ON_PAGE = 10
ONE_KIND = 100


@require_safe
def results(request: HttpRequest) -> HttpResponse:
    """Show what matches `q`, by kind; `kind` narrows it to one, with more of it."""
    text, kind = request.GET.get("q", "").strip(), request.GET.get("kind", "")
    kind = kind if kind in settings.SEARCH_PROVIDERS else ""
    limit = ONE_KIND if kind else ON_PAGE
    groups = search(text, user=cast(AbstractUser, request.user), limit=limit, kind=kind)
    context = {"q": text, "kind": kind, "groups": groups, "longest": LONGEST_QUERY}
    return render(request, "common/search/results.html", context)


@require_safe
def hits(request: HttpRequest) -> HttpResponse:
    """Show the first hits for `q`: the list of the dialog."""
    text = request.GET.get("q", "").strip()
    groups = search(text, user=cast(AbstractUser, request.user), limit=IN_DIALOG)
    return render(request, "common/search/_hits.html", {"q": text, "groups": groups})
