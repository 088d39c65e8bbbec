"""The site's own pages: counts of the inbox and API documentation."""

from typing import cast

from csp.constants import SELF
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularSwaggerSplitView

from alignment.misalignments.queries.misalignment_list import own_disagreements
from common.inbox.queries import inbox_rows
from labeling.models.people import User


@require_safe
def inbox_counts(request: HttpRequest) -> HttpResponse:
    """Show how much is unread, and how many open disagreements are one's own: a fragment of every page."""
    user = cast(User, request.user)
    context = {"new": len(inbox_rows(user=user, unread=True)), "mine": own_disagreements(user=user)}
    # NB: without the request, which would compute the navigation again for two numbers.
    return HttpResponse(render_to_string("common/inbox/_counts.html", context))


@method_decorator(
    csp_replace({"img-src": [SELF, "data:"], "style-src": [SELF, "'unsafe-inline'"]}), name="dispatch"
)
class ApiDocs(SpectacularSwaggerSplitView):
    """Swagger UI from the sidecar; the only route with its own CSP."""
