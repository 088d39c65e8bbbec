"""Run against run: the chats whose verdict flipped."""

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from alignment.comparison.views import back_of
from alignment.judge_comparison.core.flips import MEANINGS, Flip
from alignment.judge_comparison.queries.flips import (
    KINDS,
    FlipRow,
    flip_choice,
    flip_document,
    flip_places,
    flip_rows,
    flipped_chats,
)
from common.access import permission_or_404
from evaluation.models.runs import FINISHED
from evaluation.runs.queries.runs import runs_open_to

PAGE = 50


@permission_or_404("labeling.see_judge")
@require_safe
def run_flips(request: HttpRequest, run_id: int) -> HttpResponse:
    """Compare a finished run with another of its set, `?with=`; `criterion` and `kind` narrow the list."""
    run = get_object_or_404(runs_open_to(request.user), pk=run_id, state__in=FINISHED)
    choice = flip_choice(run, request.GET.get("with", ""), user=request.user)
    key, kind = request.GET.get("criterion", ""), request.GET.get("kind", "")
    if choice is None or kind not in KINDS:
        raise Http404
    context = {"run": run, "choice": choice, "key": key, "kind": kind, "back": back_of(request)}
    if choice.before and not choice.closed:
        document = flip_document(choice)
        rows = flip_rows(document, choice.scope)
        if key and all(row.criterion.key != key for row in rows):
            raise Http404
        places = flip_places(document, rows, key=key, kind=kind)
        page = Paginator(places, PAGE).get_page(request.GET.get("page"))
        context |= {
            "rows": [row for row in rows if row.changed],
            "same": [row for row in rows if not row.changed],
            "totals": _totals(rows),
            "flips": [(flip.value, MEANINGS[flip]) for flip in Flip],
            "page_obj": page,
            "chats": flipped_chats(choice, list(page)),
            "only": next((row.criterion for row in rows if row.criterion.key == key), None),
        }
    return render(request, "alignment/judge_comparison/flips.html", context)


def _totals(rows: list[FlipRow]) -> dict[str, int]:
    totals = {flip.value: sum(row.counts[flip] for row in rows) for flip in Flip}
    return totals | {name: sum(getattr(row, name) for row in rows) for name in ("both", "flipped")}
