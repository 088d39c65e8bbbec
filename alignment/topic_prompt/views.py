"""The topic prompt: its page, and its part of *Incoming chats*. For leads."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.models.topic_prompt import TopicPrompt
from alignment.topic_prompt.forms import TopicPromptForm
from alignment.topic_prompt.queries import prompt_state
from alignment.topic_prompt.services import topic_prompt_change, topic_prompt_measure
from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User

RIGHT = "labeling.manage_labeling"


@permission_or_404(RIGHT)
@require_http_methods(["GET", "POST"])
def topic_prompt(request: HttpRequest) -> HttpResponse:
    """Show and change the topic prompt."""
    row = TopicPrompt.current()
    form = TopicPromptForm(request.POST if request.method == "POST" else None, row=row)
    if request.method == "POST" and form.is_valid():
        try:
            row = topic_prompt_change(values=form.cleaned_data, by=cast(User, request.user))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, "Topic prompt saved." if row.active else "Saved. It is switched off.")
            return redirect("alignment:topic_prompt")
    return render(request, "alignment/topic_prompt/page.html", {"form": form, "found": prompt_state()})


@permission_or_404(RIGHT)
@require_safe
def topic_prompt_panel(request: HttpRequest) -> HttpResponse:
    """Show state and agreement of the topic prompt: a part of *Incoming chats*."""
    return render(request, "alignment/topic_prompt/_panel.html", {"found": prompt_state(), "linked": True})


@permission_or_404(RIGHT)
@require_POST
def topic_prompt_measured(request: HttpRequest) -> HttpResponse:
    """Measure the topic prompt on chats whose topic is known."""
    try:
        chats = topic_prompt_measure(by=cast(User, request.user))
        messages.success(request, f"Measuring on {chats:,} chats.")
    except (FieldProblem, InputProblem) as problem:
        text = problem.message if isinstance(problem, FieldProblem) else str(problem)
        messages.error(request, f"Not measured: {text}.")
    return redirect("alignment:topic_prompt")
