"""The docs at `/help/`: index, pages, pictures, and the Markdown that agents read."""

import re
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from labeling.people.api.permissions import UsesApi
from lace_site.manual.queries import DOCS, INDEX, file_of, page, sections

PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List all pages by section, with a search over them."""
    return render(request, "lace_site/manual/index.html", {"sections": sections()})


@require_safe
def help_page(request: HttpRequest, page_name: str) -> HttpResponse:
    """Show one page of the docs."""
    if page_name == INDEX.removesuffix(".md"):
        return redirect("help")
    found = page(page_name)
    if not found:
        raise Http404
    title, body = found
    return render(request, "lace_site/manual/page.html", {"page_title": title, "body": body})


@require_safe
def picture(request: HttpRequest, picture_name: str) -> HttpResponse:
    """Send a picture of the docs."""
    path = Path(picture_name)
    ending = path.suffix if path.suffix in PICTURES else ""
    file = file_of(f"images/{path.with_suffix('')}", ending=ending) if ending else None
    if not file:
        raise Http404
    return HttpResponse(file.read_bytes(), content_type=PICTURES[ending])


@require_safe
def moved(request: HttpRequest, mark: str, page_name: str) -> HttpResponse:
    """Lead from the place where earlier versions had their docs."""
    if not re.fullmatch("[0-9a-f]{12}", mark) or not file_of(page_name):
        raise Http404
    return redirect("help_page", page_name, permanent=True)


@extend_schema(exclude=True)
class HelpText(APIView):
    """The docs as text, for agents: by a session or a token."""

    permission_classes = [UsesApi]

    def get(self, request: Request, page_name: str = "") -> HttpResponse:
        """Send the index of all pages, llms.txt, or the Markdown of one."""
        path = file_of(page_name) if page_name else DOCS / "llms.txt"
        if not path:
            raise Http404
        kind = "text/markdown" if page_name else "text/plain"
        return HttpResponse(path.read_text(encoding="utf-8"), content_type=f"{kind}; charset=utf-8")
