"""API of exports that need labels and verdicts: the verdicts of a run as a download."""

from typing import cast

from django.db import transaction
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from alignment.comparison.api import ReportView
from alignment.exports.queries.lines import VERDICT_COLUMNS, export_runs, verdict_lines
from alignment.session_scores.queries import listed_members
from common.api import NO_ACCESS, DownloadView
from common.downloads import TYPES, lines_file
from labeling.models.people import User
from labeling.people.api.permissions import SeesJudge
from labeling.people.services.audit import audit


class RunVerdicts(ReportView, DownloadView):
    """The verdicts of a run as a download."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="run_verdicts",
        parameters=[OpenApiParameter("kind", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(TYPES))],
        responses={(200, kind): OpenApiTypes.STR for kind in TYPES.values()} | NO_ACCESS,
    )
    def get(self, request: Request, run_id: int, kind: str) -> StreamingHttpResponse:
        """The lines of `manage.py export verdicts`, streamed, of the chats you may see."""
        if kind not in TYPES:
            raise Http404
        run = self.run(run_id)
        members = listed_members(self.scope(run.chat_set, run), user=request.user)
        with transaction.atomic():
            audit(actor=cast(User, request.user), verb="verdicts exported", obj=run, format=kind)
        lines = verdict_lines(export_runs([run])[0], members)
        return lines_file(lines, VERDICT_COLUMNS, name=f"run-{run.pk}-verdicts", kind=kind)
