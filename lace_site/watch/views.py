"""The status page, for leads."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.access import permission_or_404
from lace_site.health import RIGHT
from lace_site.watch.status import site_now


@permission_or_404(RIGHT)
@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """Workers, queues, endpoints, disks and what stands still; its part that reloads where htmx asks."""
    page = "_status.html" if request.headers.get("HX-Request") else "status.html"
    return render(request, f"lace_site/watch/{page}", {"site": site_now()})
