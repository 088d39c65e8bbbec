"""Chat sets: the list, and one set with its topics, labelling jobs and chats."""

from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from labeling.access import permission_or_404
from labeling.forms import JobForm
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.selectors.exports import LABELLING
from labeling.selectors.sets import (
    TopicRow,
    chat_rows,
    demo_notices,
    job_rows,
    set_members,
    set_rows,
    topic_rows,
)
from labeling.services.jobs import job_open
from labeling.services.roles import rater_for

CHATS_A_PAGE = 50


@permission_or_404("labeling.see_judge")
def set_list(request: HttpRequest) -> HttpResponse:
    """Every chat set with its size and how far its labels go."""
    return render(request, "labeling/set_list.html", {"sets": set_rows()})


@permission_or_404("labeling.see_judge")
@require_http_methods(["GET", "POST"])
def set_detail(request: HttpRequest, set_id: int) -> HttpResponse:
    """One set; a lead opens labelling jobs here."""
    chat_set = get_object_or_404(ChatSet.objects.select_related("rubric"), pk=set_id)
    form = None
    if request.user.has_perm("labeling.manage_labeling"):
        form = JobForm(request.POST or None, chat_set=chat_set)
        if request.method == "POST" and form.is_valid() and _opened(request, form, chat_set):
            return redirect("labeling:set_detail", chat_set.pk)
    elif request.method == "POST":
        raise Http404
    return render(request, "labeling/set_detail.html", _context(request, chat_set) | {"form": form})


def _opened(request: HttpRequest, form: JobForm, chat_set: ChatSet) -> bool:
    """Open the job; what the service refuses becomes an error of the form."""
    given = form.cleaned_data
    try:
        job = job_open(
            chat_set=chat_set,
            name=given["name"],
            criteria=list(given["criteria"]),
            raters=[rater_for(user=user) for user in given["raters"]],
            overlap=given["overlap"],
            by=cast(User, request.user),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return False
    messages.success(request, f"{job.name} is open. It is in the queue of {len(given['raters'])} raters now.")
    return True


def _context(request: HttpRequest, chat_set: ChatSet) -> dict[str, Any]:
    topics = topic_rows(chat_set=chat_set)
    topic, split = request.GET.get("topic", ""), request.GET.get("split", "")
    members = set_members(chat_set=chat_set, user=request.user, topic=topic, split=split)
    page = Paginator(members, CHATS_A_PAGE).get_page(request.GET.get("page"))
    return {
        "chat_set": chat_set,
        "topics": topics,
        "totals": _totals(topics),
        "jobs": job_rows(chat_set=chat_set),
        "page_obj": page,
        "chats": chat_rows(chat_set=chat_set, members=list(page)),
        "criteria": chat_set.rubric.criteria.filter(state="active").count(),
        "topic": topic,
        "split": split,
        "splits": Split.values,
        "exports": list(LABELLING),
        "notices": demo_notices(chat_set=chat_set),
        "hides_holdout": not request.user.has_perm("labeling.see_holdout"),
    }


def _totals(topics: list[TopicRow]) -> dict[str, int]:
    names = ("chats", "train", "dev", "holdout", "labelled", "answered", "unresolved")
    return {name: sum(getattr(row, name) for row in topics) for name in names}
