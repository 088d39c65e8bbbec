"""Permissions of the API's routes: without one, the route answers 404."""

from django.http import Http404
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from common.api import RequiredPermission
from labeling.people.queries.tokens import own_scopes


class UsesApi(BasePermission):
    """The API's document, for accounts and tokens that may call at least one route."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the caller is signed in. Raises Http404 for one without any permission."""
        if not request.user or not request.user.is_authenticated:
            return False
        if not own_scopes(user=request.user):
            raise Http404
        return True


class LabelsChats(RequiredPermission):
    """Routes of raters."""

    permission = "labeling.label_chats"


class WritesTexts(RequiredPermission):
    """Routes of authors and leads, who write what raters and judges read."""

    permission = "labeling.edit_prompts"


class ManagesLabeling(RequiredPermission):
    """Routes of leads on the labelling side."""

    permission = "labeling.manage_labeling"


class SeesJudge(RequiredPermission):
    """Routes that show runs, verdicts and reports."""

    permission = "labeling.see_judge"


class StartsRuns(RequiredPermission):
    """Routes that cost money."""

    permission = "labeling.start_runs"


class SendsChats(RequiredPermission):
    """Routes of systems that send chats: a token for them opens nothing else."""

    permission = "labeling.send_chats"


class ReadsMetrics(RequiredPermission):
    """Routes of systems that read experiments: a token for them opens nothing else."""

    permission = "labeling.read_metrics"


class Releases(RequiredPermission):
    """Routes that decide on releases: releasing versions, policies, certificates."""

    permission = "labeling.release_prompts"
