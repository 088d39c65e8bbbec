"""The route `/metrics`, for a Prometheus that knows the token."""

import os
from hmac import compare_digest

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import CollectorRegistry

from lace_site.watch.collector import SiteCollector
from lace_site.watch.pages_timed import REGISTRY

SITE = SiteCollector()


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in Prometheus's text format; 404 to whoever does not send the token, or where none is set."""
    token = settings.LACE_METRICS_TOKEN
    sent = request.headers.get("Authorization", "")
    if not token or not compare_digest(sent.encode(), f"Bearer {token}".encode()):
        raise Http404
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """Return all metrics: those of every web process of this machine, and those of the site."""
    site = CollectorRegistry()
    site.register(SITE)
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY) + generate_latest(site)
    pages = CollectorRegistry()
    MultiProcessCollector(pages)  # type: ignore[no-untyped-call]
    return generate_latest(pages) + generate_latest(site)
