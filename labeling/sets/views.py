"""Chat sets: the list, and one set with its topics, labelling jobs and chats."""

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from common.access import permission_or_404
from common.problems import InputProblem
from labeling.jobs.queries.jobs import job_rows
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.sampling import SamplePlan
from labeling.sets.queries import (
    TopicRow,
    chat_jobs,
    chat_labels,
    chat_places,
    chat_rows,
    demo_notices,
    dropped_notices,
    kind_choices,
    plan_sets,
    set_members,
    set_rows,
    topic_rows,
)
from labeling.sets.services import UnconfirmedError, chat_set_kind_change
from labeling.transfer.queries.exports import LABELLING

CHATS_A_PAGE = 50
SETS_A_PAGE = 50
JOBS_SHOWN = 20


@permission_or_404("labeling.see_judge")
def set_list(request: HttpRequest) -> HttpResponse:
    """All chat sets with their sizes and numbers of labelled chats; those of sample plans by plan."""
    given = request.GET.get("plan", "")
    if not given:
        context = {"sets": set_rows(user=request.user), "plans": plan_sets()}
        return render(request, "labeling/sets/list.html", context)
    plan = get_object_or_404(SamplePlan, pk=int(given) if given.isdecimal() and len(given) < 19 else 0)
    page = Paginator(ChatSet.objects.of_plan(plan.pk).order_by("-pk"), SETS_A_PAGE).get_page(
        request.GET.get("page")
    )
    shown = ChatSet.objects.filter(pk__in=[row.pk for row in page]).order_by("-pk")
    context = {"plan": plan, "sets": set_rows(user=request.user, sets=shown), "page_obj": page}
    return render(request, "labeling/sets/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def set_detail(request: HttpRequest, set_id: int) -> HttpResponse:
    """One chat set with its topics, jobs and chats."""
    chat_set = get_object_or_404(ChatSet.objects.select_related("rubric"), pk=set_id)
    return render(request, "labeling/sets/detail.html", _context(request, chat_set))


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def set_kind(request: HttpRequest, set_id: int) -> HttpResponse:
    """Choose the kind of a set; a kind that changes blindness needs a confirmation."""
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    chosen, problem = chat_set.kind, ""
    if request.method == "POST":
        chosen = request.POST.get("kind", "")
        confirmed = "confirmed" in request.POST
        try:
            chat_set_kind_change(
                chat_set=chat_set, kind=chosen, by=cast(User, request.user), confirmed=confirmed
            )
        except UnconfirmedError:
            problem = "Read what changes, then tick the box below."
        except InputProblem as refused:
            problem = str(refused)
        else:
            messages.success(request, f"Kind of {chat_set.name}: {chosen}.")
            return redirect("labeling:set_detail", set_id)
    choices = kind_choices(chat_set=chat_set)
    context = {"chat_set": chat_set, "choices": choices, "chosen": chosen, "problem": problem}
    context["changeable"] = any(not (choice.current or choice.refusal) for choice in choices)
    return render(request, "labeling/sets/kind.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def set_chat(request: HttpRequest, set_id: int, chat_id: int) -> HttpResponse:
    """One chat of a set: transcript, labels, jobs, and the sets and splits that it is in."""
    chat_set = get_object_or_404(ChatSet.objects.select_related("rubric"), pk=set_id)
    members = set_members(chat_set=chat_set, user=request.user)
    member = get_object_or_404(members, chat=chat_id)
    context = {
        "chat_set": chat_set,
        "chat": member.chat,
        "rows": chat_labels(chat_set=chat_set, chat=member.chat),
        "places": chat_places(member.chat),
        "jobs": chat_jobs(member.chat),
        "before": members.filter(position__lt=member.position).last(),
        "after": members.filter(position__gt=member.position).first(),
    }
    return render(request, "labeling/sets/chat.html", context)


def _context(request: HttpRequest, chat_set: ChatSet) -> dict[str, Any]:
    topics = topic_rows(chat_set=chat_set, user=request.user)
    topic, split = request.GET.get("topic", ""), request.GET.get("split", "")
    members = set_members(chat_set=chat_set, user=request.user, topic=topic, split=split)
    page = Paginator(members, CHATS_A_PAGE).get_page(request.GET.get("page"))
    return {
        "chat_set": chat_set,
        "topics": topics,
        "totals": _totals(topics),
        "jobs": job_rows(chat_set=chat_set, limit=JOBS_SHOWN),
        "jobs_shown": JOBS_SHOWN,
        "page_obj": page,
        "chats": chat_rows(chat_set=chat_set, members=list(page)),
        "criteria": chat_set.rubric.criteria.filter(state="active").count(),
        "topic": topic,
        "split": split,
        "splits": Split.values,
        "exports": list(LABELLING),
        "notices": demo_notices(chat_set=chat_set) + dropped_notices(chat_set=chat_set, user=request.user),
        "hidden": sum(row.chats for row in topics if row.held),
        "hides_own": cast(User, request.user).is_allowed("label_chats"),
    }


def _totals(topics: list[TopicRow]) -> dict[str, int]:
    names = ("chats", "train", "dev", "holdout", "labelled", "answered", "unresolved")
    totals = {name: sum(getattr(row, name) for row in topics) for name in names}
    return totals | {"open": sum(row.chats for row in topics if not row.held)}
