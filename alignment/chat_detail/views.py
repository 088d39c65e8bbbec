"""One chat of a run: its transcript, labels and verdicts, and the triage of its disagreement."""

from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from alignment.chat_detail.queries.page import chat_page
from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope
from alignment.comparison.views import back_of, comparison_view, run_and_scope
from alignment.misalignments.queries.runs import RESCAN_ON_REQUEST_AFTER, counted_runs, runs_waiting
from alignment.misalignments.queries.triage import (
    CAUSES,
    item_of,
    newest_verdict,
    triage_counts,
    triage_form,
)
from alignment.prompts.queries.sections import hides_examples
from alignment.reports.queries import chat_lists
from alignment.reports.queries.page import notices, scope_query
from common.access import permission_or_404
from evaluation.models.runs import ANCHORS, FINISHED, Run, RunChat
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown


@permission_or_404("labeling.see_judge")
@comparison_view
def chat(request: HttpRequest, run_id: int, chat_id: int) -> HttpResponse:
    """Show one chat of a run: transcript, labels, verdicts, how the judge decided, and the triage."""
    run, scope = run_and_scope(request, run_id)
    row = _chat_or_404(request, run, chat_id)
    back = back_of(request)
    more = scope_query(scope, start="&") + (f"&{urlencode({'back': back.url})}" if back else "")
    context = chat_page(scope=scope, run=run, chat=row, key=request.GET.get("criterion", ""), query=more)
    key = context["focus"]["criterion"]["key"]
    # A chat outside the scope counts as before its first chat.
    member, split = scope.members.filter(chat=row).values_list("pk", "split").first() or (0, None)
    extra = {
        "split": split,
        "run_url": reverse("alignment:report_run", args=[run.pk]) + scope_query(scope),
        "criterion_url": reverse("alignment:criterion_report", args=[run.pk, key]) + scope_query(scope),
        "back": back,
        "notices": notices(scope),
        "prompts_shown": not hides_examples(run.judge, user=request.user),
    }
    place = _place(request, scope, run, key, member, more)
    triage = _triage(request, scope, run, row, context["focus"])
    return render(request, "alignment/chat_detail/chat.html", context | place | extra | triage)


@permission_or_404("labeling.see_judge")
@require_safe
def chat_triaged(request: HttpRequest, run_id: int, chat_id: int) -> HttpResponse:
    """Count the triaged disagreements of the criterion: the fragment that replaces the counts of the chat."""
    run, scope = run_and_scope(request, run_id)
    _chat_or_404(request, run, chat_id)
    key = request.GET.get("criterion", "")
    if all(row.key != key for row in scope.criteria):
        raise Http404
    counts = triage_counts(run, key, user=cast(User, request.user))
    return render(request, "alignment/chat_detail/_triage_counts.html", {"triage_counts": counts})


@permission_or_404("labeling.see_judge")
def chat_newest(request: HttpRequest, chat_id: int) -> HttpResponse:
    """Redirect to the chat in the newest finished run that judged it; for pages without a run."""
    row = get_object_or_404(chats_shown(user=request.user), pk=chat_id)
    finished = Run.objects.filter(state__in=FINISHED, run_chats__chat=row)
    run = finished.exclude(purpose__in=(Run.Purpose.TRY, ANCHORS)).order_by("-pk").first()
    if run is None:
        messages.info(request, "No finished run has judged this chat yet.")
        place = ChatSetMember.objects.filter(chat=row).first()
        if place is None:
            return redirect("alignment:report_list")
        return redirect("labeling:set_chat", place.chat_set_id, row.pk)
    criterion = {name: value for name, value in request.GET.items() if name == "criterion"}
    return redirect(reverse("alignment:chat", args=[run.pk, row.pk], query=criterion))


def _chat_or_404(request: HttpRequest, run: Run, chat_id: int) -> Chat:
    chats = chats_shown(user=request.user).select_related("topic")
    return get_object_or_404(chats, pk=chat_id, pk__in=run.run_chats.values("chat_id"))


def _place(request: HttpRequest, scope: Scope, run: Run, key: str, member: int, query: str) -> dict[str, Any]:
    """Place among the disagreements on this criterion, in the set's order; URLs of those before and after."""
    places = chat_lists.disagreements(replace(scope, only=key), request.user)
    members = places.around(member)
    chats = dict(RunChat.objects.filter(pk__in=[pk for pk in members if pk]).values_list("pk", "chat_id"))
    urls = {
        name: f"{reverse('alignment:chat', args=[run.pk, chats[pk]])}?criterion={key}{query}"
        for name, pk in zip(("prev_url", "next_url"), members, strict=True)
        if pk
    }
    listed = f"{reverse('alignment:disagreements', args=[run.pk])}{scope_query(scope)}"
    if scope.against == CONSENSUS and counted_runs().filter(pk=run.pk).exists():
        query = urlencode({"criterion": key, "run": run.pk})
        listed = f"{reverse('alignment:misalignment_list')}?{query}"
    return urls | {"position": places.position(member), "listed": len(places.rows), "list_url": listed}


def _triage(
    request: HttpRequest, scope: Scope, run: Run, chat: Chat, focus: dict[str, Any]
) -> dict[str, Any]:
    """The triage of the open criterion: its form, the counts, whether a scan has still to find it."""
    user = cast(User, request.user)
    if scope.against != CONSENSUS or not counted_runs().filter(pk=run.pk).exists():
        return {}
    item = item_of(chat, focus["criterion_id"], user=user)
    if item is None:
        waits = focus["differ"] and runs_waiting(after=RESCAN_ON_REQUEST_AFTER).filter(pk=run.pk).exists()
        return {"waits_for_scan": waits}
    verdict = focus["verdict"] if item.newest_run_id == run.pk else newest_verdict(item)
    return {
        "item": item,
        "triage": triage_form(item, verdict, user=user),
        "triage_counts": triage_counts(run, focus["criterion"]["key"], user=user),
        "causes": CAUSES,
    }
