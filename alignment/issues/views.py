"""Issues: the list, one issue with its chats, changes, and the panel of new ones."""

from datetime import date
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.issues.core.clusters import FEWEST_TEXTS
from alignment.issues.forms import GroupingForm
from alignment.issues.queries.issues import (
    HEAD,
    STATES,
    IssueFilter,
    chats_of,
    chats_with_words,
    issue_lines,
    issue_list,
    issue_page,
    new_issues,
)
from alignment.issues.services import (
    IssueChange,
    grouping_change,
    issue_change,
    issue_for_raters,
    issue_report,
    issue_to_set,
    naming_cancel,
    naming_prepare,
    naming_start,
    scan_request,
)
from alignment.models.issues import Issue, IssueNaming, IssueSettings
from common.access import permission_or_404
from common.downloads import table_file
from common.problems import FieldProblem, InputProblem
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.runs.worker.single_calls import question_estimate
from labeling.models.chats import Topic
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import accounts_with
from labeling.people.services.audit import audit
from labeling.sets.queries import names_of_sets
from labeling.sets.services import SPLITS_BY_HAND

CHATS_A_PAGE = 20
DEFAULT_CHATS = 50
SEES = permission_or_404("labeling.see_judge")
EDITS = permission_or_404("labeling.edit_prompts")
MANAGES = permission_or_404("labeling.manage_labeling")


@SEES
@require_safe
def issues(request: HttpRequest) -> HttpResponse:
    """Show the issues that the query string selects."""
    return _list(request)


def _list(request: HttpRequest, grouping: GroupingForm | None = None) -> HttpResponse:
    only = IssueFilter.read(request.GET.dict())
    found = issue_list(only=only, user=request.user)
    context = {
        "found": found,
        "only": only,
        "states": STATES,
        "fewest": FEWEST_TEXTS,
        "criteria": Criterion.objects.filter(pk__in=Issue.objects.values("criterion")).order_by("key"),
        "topics": Topic.objects.filter(pk__in=Issue.objects.values("topic")).order_by("name"),
        "owners": accounts_with("edit_prompts"),
    }
    if _user(request).has_perm("labeling.manage_labeling"):
        context["grouping"] = grouping or GroupingForm(row=IssueSettings.current())
    return render(request, "alignment/issues/list.html", context)


@MANAGES
@SEES
@require_POST
def change_grouping(request: HttpRequest) -> HttpResponse:
    """Choose the embedding model that compares failing chats, or none."""
    form = GroupingForm(request.POST, row=IssueSettings.current())
    if form.is_valid():
        try:
            row = grouping_change(values=form.cleaned_data, by=_user(request))
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            with_model = f"Saved. {row.embedding_model} takes part from the next clustering on."
            messages.success(request, with_model if row.embedding_model else "Saved. Words alone decide.")
            return redirect("issues:list")
    return _list(request, form)


@SEES
@require_safe
def issues_csv(request: HttpRequest) -> HttpResponse:
    """Return the list as a table."""
    only = IssueFilter.read(request.GET.dict())
    found = issue_list(only=only, user=request.user)
    audit(actor=_user(request), verb="issues exported", obj=Workspace.current(), format="csv")
    return table_file(issue_lines(found), HEAD, name="issues.csv")


@SEES
@require_safe
def panel(request: HttpRequest) -> HttpResponse:
    """Show new and returned issues: a part of Monitoring and of a lead's Home."""
    found = new_issues(user=request.user)
    if found.newest is None:
        return HttpResponse()
    return render(request, "alignment/issues/_new.html", {"found": found})


@SEES
@require_safe
def issue(request: HttpRequest, issue_id: int) -> HttpResponse:
    """Show one issue: examples, trend, and its chats by topic."""
    rows = Issue.objects.select_related("criterion__rubric", "topic", "owner", "merged_into", "changed_by")
    row, user = get_object_or_404(rows, pk=issue_id), cast(User, request.user)
    found = issue_page(row, user=user)
    topic = next((one for one, _ in found.topics if one.key == request.GET.get("topic")), None)
    chats = chats_of(row, user=user)
    page = Paginator(chats.filter(chat__topic=topic) if topic else chats, CHATS_A_PAGE).get_page(
        request.GET.get("page")
    )
    context: dict[str, Any] = {
        "issue": row,
        "found": found,
        "topic": topic,
        "page_obj": page,
        "chats": chats_with_words([one.verdict_id for one in page]),
        "states": Issue.State.choices,
        "owners": accounts_with("edit_prompts"),
        "thread": f"issue:{row.pk}",
        "most": DEFAULT_CHATS,
        "today": timezone.localdate(),
    }
    if user.has_perm("labeling.manage_labeling"):
        context["sets"] = names_of_sets()
        context["splits"] = SPLITS_BY_HAND
    return render(request, "alignment/issues/detail.html", context)


@EDITS
@SEES
@require_POST
def change(request: HttpRequest, issue_id: int) -> HttpResponse:
    """Store state, owner, note and name."""
    row, form = get_object_or_404(Issue, pk=issue_id), request.POST
    values = IssueChange(*(form.get(name) for name in ("state", "owner", "note", "name")))
    try:
        issue_change(issue=row, change=values, seen=_number(form.get("revision")), by=_user(request))
        messages.success(request, "Saved.")
    except FieldProblem as problem:
        messages.error(request, f"Not saved: {problem.field} {problem.message}.")
    except InputProblem as problem:
        messages.error(request, f"Not saved: {problem}.")
    return redirect("issues:detail", row.pk)


@EDITS
@SEES
@require_http_methods(["GET", "HEAD", "POST"])
def naming(request: HttpRequest, issue_id: int) -> HttpResponse:
    """The part that asks the judge's model for a name; `act` is start, again or cancel.

    It polls while a name is asked for, and reloads the page once there is an answer.
    """
    row, problem, act = get_object_or_404(Issue, pk=issue_id), "", request.POST.get("act", "")
    newest = row.namings.first()
    waited = bool(request.GET.get("wait"))
    try:
        if act in ("start", "again"):
            newest = naming_start(issue=row, by=_user(request), anew=act == "again")
        elif act == "cancel" and newest:
            naming_cancel(naming=newest)
            newest = row.namings.first()
    except InputProblem as refused:
        problem = str(refused)
    if newest and waited and not newest.is_open:
        return HttpResponse(headers={"HX-Refresh": "true"})
    context: dict[str, Any] = {"issue": row, "naming": newest, "problem": problem}
    if not (newest and newest.is_open):
        context |= _offer(row, _user(request))
        again = newest is not None and newest.state == IssueNaming.State.DONE and "estimate" in context
        context["act"] = "again" if again and context["estimate"].answered else "start"
    return render(request, "alignment/issues/_naming.html", context)


def _offer(row: Issue, user: User) -> dict[str, Any]:
    """Return the request that could be sent now with its estimate, or why there is none."""
    try:
        profiles_ensure()
        prepared, _ = naming_prepare(issue=row, by=user)
        return {"model": prepared.model, "estimate": question_estimate(prepared)}
    except InputProblem as problem:
        return {"refused": str(problem)}


@MANAGES
@SEES
@require_POST
def send(request: HttpRequest, issue_id: int, act: str) -> HttpResponse:
    """Send an issue's chats to a set or to raters, or report it to webhooks."""
    row = get_object_or_404(Issue.objects.select_related("criterion__rubric"), pk=issue_id)
    if act not in ("set", "raters", "webhook"):
        raise Http404
    try:
        return _send(request, row, act)
    except InputProblem as problem:
        messages.error(request, f"{str(problem).rstrip('.').capitalize()}.")
        return redirect("issues:detail", row.pk)


def _send(request: HttpRequest, row: Issue, act: str) -> HttpResponse:
    user, form = _user(request), request.POST
    most = min(max(_number(form.get("chats")), 1), 500)
    if act == "webhook":
        address = request.build_absolute_uri(reverse("issues:detail", args=[row.pk]))
        issue_report(issue=row, address=address, by=user)
        messages.success(request, "Sent to webhooks.")
        return redirect("issues:detail", row.pk)
    if act == "raters":
        added = issue_for_raters(issue=row, name=form.get("name", ""), most=most, by=user)
        return redirect(f"{reverse('labeling:job_new')}?set={added.chat_set.pk}")
    split = form.get("split", "")
    if split not in SPLITS_BY_HAND:
        raise InputProblem("Choose the split train or dev")
    name = form.get("new_set", "").strip() or form.get("set", "")
    added = issue_to_set(
        issue=row, name=name, new=bool(form.get("new_set", "").strip()), most=most, split=split, by=user
    )
    known = f", {added.kept} were in it" if added.kept else ""
    messages.success(request, f"{added.added} chats added to {added.chat_set.name}{known}.")
    return redirect("issues:detail", row.pk)


@MANAGES
@SEES
@require_POST
def find(request: HttpRequest) -> HttpResponse:
    """Cluster the weeks of a period again."""
    try:
        first, last = _day(request.POST.get("first")), _day(request.POST.get("last"))
        scans = scan_request(first=first, last=last, by=_user(request))
        messages.success(request, f"{len(scans)} week{'s' * (len(scans) > 1)} will be clustered.")
    except FieldProblem as problem:
        messages.error(request, f"The {problem.field} day {problem.message}.")
    except InputProblem as problem:
        messages.error(request, f"{problem}.")
    return redirect("issues:list")


def _day(text: str | None) -> date:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        raise InputProblem("Choose the first and the last day") from None


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _user(request: HttpRequest) -> User:
    return cast(User, request.user)
