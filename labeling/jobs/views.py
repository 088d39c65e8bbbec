"""Labelling jobs for leads: the list, opening one, one job with its progress, closing and starting it."""

from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from labeling.jobs.forms import JobForm
from labeling.jobs.queries.job_page import job_page
from labeling.jobs.queries.jobs import gold_chats, job_rows, job_size, team_size
from labeling.jobs.services import job_close, job_open, job_start
from labeling.models.chats import ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.people.services.roles import rater_for
from labeling.rating.services.leases import SkipReason
from labeling.sets.queries import demo_notices, set_rows

JOBS_A_PAGE = 50
MANAGES = permission_or_404("labeling.manage_labeling")


@MANAGES
@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """Every labelling job, the newest first."""
    page = Paginator(LabelingJob.objects.order_by("-pk"), JOBS_A_PAGE).get_page(request.GET.get("page"))
    jobs = job_rows(jobs=LabelingJob.objects.filter(pk__in=[job.pk for job in page]))
    return render(request, "labeling/jobs/list.html", {"jobs": jobs, "page_obj": page})


@MANAGES
@require_http_methods(["GET", "POST"])
def job_new(request: HttpRequest) -> HttpResponse:
    """Choose a set, then say who labels how much of it."""
    if not request.GET.get("set"):
        return render(request, "labeling/jobs/new.html", {"sets": set_rows()})
    chat_set = _set(request)
    form = JobForm(request.POST or None, chat_set=chat_set)
    if request.method == "POST" and form.is_valid() and (job := _opened(request, form, chat_set)):
        return redirect("labeling:job_detail", job.pk)
    return render(request, "labeling/jobs/new.html", {"form": form, "chat_set": chat_set})


@MANAGES
@require_POST  # writes nothing; an address could not hold a form with many raters
def job_new_size(request: HttpRequest) -> HttpResponse:
    """What the job in the form would ask for: the part of the page beside it."""
    chat_set = _set(request)
    form = JobForm(request.POST, chat_set=chat_set)
    form.is_valid()
    first = form.cleaned_data.get("calibration_set")
    context = {"form": form, "size": _size(form, chat_set), "calibration_set": first}
    return render(request, "labeling/jobs/_size.html", context)


@MANAGES
@require_safe
def job_detail(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job: how far it is, by rater, set and topic; what was skipped; who is in work."""
    job = _job(job_id)
    page = job_page(job=job, user=cast(User, request.user))
    skipped = [(row, _reason(row.reason)) for row in page.skipped]
    waits = job.started_after.filter(state=LabelingJob.State.WAITING).order_by("pk")
    context = {"job": job, "page": page, "skipped": skipped, "waiting_jobs": list(waits)}
    context["notices"] = demo_notices(chat_set=job.chat_set)
    return render(request, "labeling/jobs/detail.html", context)


@MANAGES
@require_POST
def job_closing(request: HttpRequest, job_id: int) -> HttpResponse:
    """Close it; back to its page."""
    try:
        job = job_close(job=_job(job_id), by=cast(User, request.user))
    except ValidationError as refused:
        messages.error(request, f"Not closed. {' '.join(refused.messages)}")
    else:
        messages.success(request, f"{job.name} is closed. Labels and drafts are kept.")
    return redirect("labeling:job_detail", job_id)


@MANAGES
@require_POST
def job_starting(request: HttpRequest, job_id: int) -> HttpResponse:
    """Start it after its calibration round; back to its page."""
    try:
        started = job_start(job=_job(job_id), by=cast(User, request.user))
    except ValidationError as refused:
        messages.error(request, f"Not started. {' '.join(refused.messages)}")
    else:
        missing = f" The round is not finished by {', '.join(started.missing)}." if started.missing else ""
        messages.success(request, f"{started.job.name} is open.{missing}")
    return redirect("labeling:job_detail", job_id)


def _set(request: HttpRequest) -> ChatSet:
    given = request.GET.get("set", "")
    known = given.isascii() and given.isdecimal() and len(given) < 19
    return get_object_or_404(ChatSet.objects.select_related("rubric"), pk=int(given) if known else 0)


def _job(job_id: int) -> LabelingJob:
    related = ("chat_set__rubric", "group", "guideline", "gold_set", "calibration__chat_set", "created_by")
    return get_object_or_404(LabelingJob.objects.select_related(*related), pk=job_id)


def _opened(request: HttpRequest, form: JobForm, chat_set: ChatSet) -> LabelingJob | None:
    """Open the job; what the service refuses becomes an error at its field."""
    asked = form.asked
    asked["criteria"] = list(asked["criteria"])
    try:
        with transaction.atomic():  # a refused job leaves no rater behind
            asked["raters"] = [rater_for(user=user) for user in asked["raters"]]
            job = job_open(chat_set=chat_set, by=cast(User, request.user), **asked)
    except ValidationError as error:
        form.refuse(error)
        return None
    waits = job.state == LabelingJob.State.WAITING
    messages.success(
        request,
        f"{job.name} waits for its calibration round, which is in the raters’ queues now."
        if waits
        else f"{job.name} is open. It is in the raters’ queues now.",
    )
    return job


def _size(form: JobForm, chat_set: ChatSet) -> Any:
    """None while a field that counts is wrong."""
    given = form.cleaned_data
    if {"overlap", "overlap_percent", "raters", "group", "gold_percent"} & set(form.errors):
        return None
    gold: list[int] = []
    if given.get("gold_set") and given.get("criteria"):
        asked = [chat_set, given["calibration_set"]] if given.get("calibration_set") else [chat_set]
        gold = gold_chats(gold_set=given["gold_set"], asked=asked, criteria=given["criteria"])
    raters = team_size(accounts=given["raters"], group=given["group"])
    whole = chat_set.kind == ChatSet.Kind.CALIBRATION
    share = given.get("overlap_percent")
    return job_size(
        chats=chat_set.members.count(),
        overlap=raters if whole else given["overlap"],
        share=share / 100 if share and not whole else None,
        raters=raters,
        gold_rate=(given.get("gold_percent") or 0) / 100,
        gold=len(gold),
    )


def _reason(stored: str) -> str:
    """`other: two chats in one` → Something else: two chats in one."""
    code, _, text = stored.partition(":")
    known = SkipReason(code).label if code in SkipReason.values else code
    return f"{known}: {text.strip()}" if text.strip() else str(known)
