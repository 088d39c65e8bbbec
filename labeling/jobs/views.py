"""Pages of labelling jobs for leads: list, new job, progress, close, start."""

from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from labeling.jobs.forms import AddRatersForm, JobForm
from labeling.jobs.queries import jobs as job_queries
from labeling.jobs.queries.job_page import job_page
from labeling.jobs.queries.jobs import gold_chats, job_size, team_size
from labeling.jobs.services import job_close, job_open, job_raters_add, job_start
from labeling.models.chats import ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.people.services.roles import rater_for
from labeling.rating.services.leases import SkipReason
from labeling.sets.queries import demo_notices, labellers, set_rows

MANAGES = permission_or_404("labeling.manage_labeling")


@MANAGES
@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """List labelling jobs, newest first; the finished ones of sample plans by plan."""
    found = job_queries.job_list(request.GET)
    if found is None:
        raise Http404
    return render(request, "labeling/jobs/list.html", {"list": found, "page_obj": found.page})


@MANAGES
@require_http_methods(["GET", "POST"])
def job_new(request: HttpRequest) -> HttpResponse:
    """Choose a chat set, then raters and labels per chat."""
    if not request.GET.get("set"):
        return render(request, "labeling/jobs/new.html", {"sets": set_rows(user=request.user)})
    chat_set = _set(request)
    form = JobForm(request.POST or None, chat_set=chat_set)
    if request.method == "POST" and form.is_valid() and (job := _open(request, form, chat_set)):
        return redirect("labeling:job_detail", job.pk)
    context = {"form": form, "chat_set": chat_set, **_too_few(form)}
    return render(request, "labeling/jobs/new.html", context)


@MANAGES
@require_POST  # writes nothing; the form may be too long for an address
def job_new_size(request: HttpRequest) -> HttpResponse:
    """The size of the job in the form, a fragment beside it."""
    chat_set = _set(request)
    form = JobForm(request.POST, chat_set=chat_set)
    form.is_valid()
    first = form.cleaned_data.get("calibration_set")
    size = _size(form, chat_set)
    context = {"form": form, "size": size, "calibration_set": first, **_too_few(form)}
    return render(request, "labeling/jobs/_size.html", context)


@MANAGES
@require_safe
def job_detail(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job: progress by rater, set and topic, skipped chats, chats in work."""
    job = _job(job_id)
    page = job_page(job=job, user=cast(User, request.user))
    skipped = [(row, _reason(row.reason)) for row in page.skipped]
    waits = job.started_after.filter(state=LabelingJob.State.WAITING).order_by("pk")
    context = {"job": job, "page": page, "skipped": skipped, "waiting_jobs": list(waits)}
    context["notices"] = demo_notices(chat_set=job.chat_set) + [row.words for row in page.dropped]
    context["form"] = AddRatersForm(job=job)
    return render(request, "labeling/jobs/detail.html", context)


@MANAGES
@require_POST
def job_raters(request: HttpRequest, job_id: int) -> HttpResponse:
    """Add raters to the job and return to its page."""
    job = _job(job_id)
    form = AddRatersForm(request.POST, job=job)
    if not form.is_valid():
        messages.error(request, "No rater added. Choose at least one account that can label.")
        return redirect("labeling:job_detail", job_id)
    try:
        with transaction.atomic():  # a refused change creates no rater
            raters = [rater_for(user=user) for user in form.cleaned_data["raters"]]
            names = job_raters_add(job=job, raters=raters, by=cast(User, request.user))
    except ValidationError as refused:
        messages.error(request, f"No rater added. {' '.join(refused.messages)}")
    else:
        messages.success(request, f"Added to {job.name}: {', '.join(names) or 'nobody new'}.")
    return redirect("labeling:job_detail", job_id)


@MANAGES
@require_POST
def job_closing(request: HttpRequest, job_id: int) -> HttpResponse:
    """Close the job and return to its page."""
    try:
        job = job_close(job=_job(job_id), by=cast(User, request.user))
    except ValidationError as refused:
        messages.error(request, f"Not closed. {' '.join(refused.messages)}")
    else:
        messages.success(request, f"Job {job.name} closed. Labels and drafts are kept.")
    return redirect("labeling:job_detail", job_id)


@MANAGES
@require_POST
def job_starting(request: HttpRequest, job_id: int) -> HttpResponse:
    """Start the job after its calibration round and return to its page."""
    try:
        started = job_start(job=_job(job_id), by=cast(User, request.user))
    except ValidationError as refused:
        messages.error(request, f"Not started. {' '.join(refused.messages)}")
    else:
        missing = f" Round not finished by {', '.join(started.missing)}." if started.missing else ""
        messages.success(request, f"Job {started.job.name} started.{missing}")
    return redirect("labeling:job_detail", job_id)


def _set(request: HttpRequest) -> ChatSet:
    text = request.GET.get("set", "")
    valid = text.isascii() and text.isdecimal() and len(text) < 19
    return get_object_or_404(ChatSet.objects.select_related("rubric"), pk=int(text) if valid else 0)


def _job(job_id: int) -> LabelingJob:
    related = ("chat_set__rubric", "group", "guideline", "gold_set", "calibration__chat_set", "created_by")
    return get_object_or_404(LabelingJob.objects.select_related(*related), pk=job_id)


def _open(request: HttpRequest, form: JobForm, chat_set: ChatSet) -> LabelingJob | None:
    """Open the job; an error of the service becomes an error of the form."""
    arguments = form.arguments
    arguments["criteria"] = list(arguments["criteria"])
    try:
        with transaction.atomic():  # a refused job creates no rater
            arguments["raters"] = [rater_for(user=user) for user in arguments["raters"]]
            job = job_open(chat_set=chat_set, by=cast(User, request.user), **arguments)
    except ValidationError as error:
        form.refuse(error)
        return None
    waits = job.state == LabelingJob.State.WAITING
    messages.success(
        request,
        f"Job {job.name} waits for its calibration round, now in the raters’ queues."
        if waits
        else f"Job {job.name} opened. It is in the raters’ queues now.",
    )
    return job


def _size(form: JobForm, chat_set: ChatSet) -> Any:
    """Return the size; None while a field that it depends on is not valid."""
    data = form.cleaned_data
    if {"overlap", "overlap_percent", "raters", "group", "gold_percent"} & set(form.errors):
        return None
    gold: list[int] = []
    if data.get("gold_set") and data.get("criteria"):
        own_sets = [chat_set, data["calibration_set"]] if data.get("calibration_set") else [chat_set]
        gold = gold_chats(gold_set=data["gold_set"], own_sets=own_sets, criteria=data["criteria"])
    raters = team_size(accounts=data["raters"], group=data["group"])
    whole = chat_set.kind == ChatSet.Kind.CALIBRATION
    share = data.get("overlap_percent")
    return job_size(
        chats=chat_set.members.count(),
        overlap=raters if whole else data["overlap"],
        share=share / 100 if share and not whole else None,
        raters=raters,
        gold_rate=(data.get("gold_percent") or 0) / 100,
        gold=len(gold),
    )


def _too_few(form: JobForm) -> dict[str, Any]:
    """Return how many accounts can label, where the job needs more of them."""
    able, text = labellers().count(), str(form["overlap"].value() or "")
    wanted = int(text) if text.isascii() and text.isdecimal() else 1
    if able >= max(2, wanted):
        return {}
    return {"able": able, "too_few": True}


def _reason(stored: str) -> str:
    """Return the readable reason: `other: two chats in one` → Something else: two chats in one."""
    code, _, text = stored.partition(":")
    known = SkipReason(code).label if code in SkipReason.values else code
    return f"{known}: {text.strip()}" if text.strip() else str(known)
