"""The site's own pages: the way in, and the API's documentation."""

from csp.constants import SELF
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView

from lace_site.navigation import navigation


def home(request: HttpRequest) -> HttpResponse:
    """The first page of the user's role; an account without a role is told so."""
    items = navigation(request)["nav"]
    if not items:
        return render(request, "no_role.html", status=403)
    # Leads and authors come for the reports, the last entry; raters have only their queue.
    return redirect(items[0].url if items[0].label == "Queue" else items[-1].url)


@method_decorator(
    csp_replace({"img-src": [SELF, "data:"], "style-src": [SELF, "'unsafe-inline'"]}), name="dispatch"
)
class ApiDocs(SpectacularSwaggerSplitView):
    """Swagger UI from the sidecar; the one route with a CSP of its own."""
