"""One chat of a run: its transcript, labels and verdicts."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from alignment.chat_detail.queries.page import chat_page
from alignment.comparison.queries.scope import Scope
from alignment.comparison.views import comparison_view, run_and_scope
from alignment.prompts.queries.sections import hides_examples
from alignment.reports.queries import chat_lists
from alignment.reports.queries.page import notices, scope_query
from common.access import permission_or_404
from evaluation.models.runs import FINISHED, Run, RunChat
from labeling.models.chats import ChatSetMember
from labeling.people.queries.visibility import chats_shown


@permission_or_404("labeling.see_judge")
@comparison_view
def chat(request: HttpRequest, run_id: int, chat_id: int) -> HttpResponse:
    """Show one chat of a run: transcript, labels, verdicts, and how the judge decided."""
    run, scope = run_and_scope(request, run_id)
    chats = chats_shown(user=request.user).select_related("topic")
    row = get_object_or_404(chats, pk=chat_id, pk__in=run.run_chats.values("chat_id"))
    more = scope_query(scope, start="&")
    context = chat_page(scope=scope, run=run, chat=row, key=request.GET.get("criterion", ""), query=more)
    key = context["focus"]["criterion"]["key"]
    # A chat outside the scope counts as before its first chat.
    member, split = scope.members.filter(chat=row).values_list("pk", "split").first() or (0, None)
    links = _neighbours(request, scope, run, key, member, more)
    report_url = reverse("alignment:report_run", args=[run.pk]) + scope_query(scope)
    extra = {
        "split": split,
        "report_url": report_url,
        "notices": notices(scope),
        "prompts_shown": not hides_examples(run.judge, user=request.user),
    }
    return render(request, "alignment/chat_detail/chat.html", context | links | extra)


@permission_or_404("labeling.see_judge")
def chat_newest(request: HttpRequest, chat_id: int) -> HttpResponse:
    """Redirect to the chat in the newest finished run that judged it; for pages without a run."""
    row = get_object_or_404(chats_shown(user=request.user), pk=chat_id)
    finished = Run.objects.filter(state__in=FINISHED, run_chats__chat=row)
    run = finished.exclude(purpose=Run.Purpose.TRY).order_by("-pk").first()
    if run is None:
        messages.info(request, "No finished run has judged this chat yet.")
        place = ChatSetMember.objects.filter(chat=row).first()
        if place is None:
            return redirect("alignment:report_list")
        return redirect("labeling:set_chat", place.chat_set_id, row.pk)
    criterion = {name: value for name, value in request.GET.items() if name == "criterion"}
    return redirect(reverse("alignment:chat", args=[run.pk, row.pk], query=criterion))


def _neighbours(
    request: HttpRequest, scope: Scope, run: Run, key: str, member: int, query: str
) -> dict[str, Any]:
    """URLs of the previous and the next disagreement on this criterion, in the set's order."""
    members = chat_lists.disagreements(replace(scope, only=key), request.user).around(member)
    chats = dict(RunChat.objects.filter(pk__in=[pk for pk in members if pk]).values_list("pk", "chat_id"))
    return {
        name: f"{reverse('alignment:chat', args=[run.pk, chats[pk]])}?criterion={key}{query}"
        for name, pk in zip(("prev_url", "next_url"), members, strict=True)
        if pk
    }
