"""The engine league of a chat set."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from alignment.judge_comparison.queries.comparison import league_document
from alignment.judge_comparison.queries.page import league_page
from alignment.judge_comparison.queries.run_selection import league_choice
from common.access import permission_or_404
from labeling.models.chats import ChatSet


@permission_or_404("labeling.see_judge")
def league(request: HttpRequest, set_id: int) -> HttpResponse:
    """Compare runs of a set in pairs; the query string selects runs and split."""
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    choice = league_choice(chat_set, query=request.GET, user=request.user)
    if choice is None:
        raise Http404
    document = None if choice.problem else league_document(choice)
    return render(request, "alignment/judge_comparison/league.html", league_page(choice, document))
