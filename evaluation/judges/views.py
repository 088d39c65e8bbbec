"""Judge profiles: list, detail, form and actions."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.forms import ProfileForm
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.model_notices import model_notices
from evaluation.judges.queries.profiles import profile_choice, profile_judges, profile_rows
from evaluation.judges.queries.recipes import recipe_line, recipe_roles, recipe_settings
from evaluation.judges.services.profiles import (
    ProfileRefused,
    endpoint_use_by_default,
    judges_today,
    profile_delete,
    profile_duplicate,
    profile_make_default,
    profile_save,
)
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import JudgeProfile
from evaluation.prompts.queries.definitions import notices_of, older_champions
from labeling.models.people import User
from labeling.models.rubric import Criterion

JUDGES_SHOWN = 20


@permission_or_404("labeling.see_judge")
@require_safe
def profile_list(request: HttpRequest) -> HttpResponse:
    """Show every profile, the default first."""
    return render(request, "evaluation/judges/profile_list.html", {"rows": profile_rows()})


@permission_or_404("labeling.see_judge")
@require_safe
def profile_detail(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Show one profile: its recipe, today's judge, and the judges created from it."""
    profile = get_object_or_404(JudgeProfile, pk=profile_id)
    judges = list(profile_judges(profile)[:JUDGES_SHOWN])
    context = {"profile": profile, "judges": judges}
    try:
        choice = profile_choice(profile)
    except FieldProblem as problem:
        return render(request, "evaluation/judges/profile_detail.html", context | {"problem": str(problem)})
    context |= {
        "line": recipe_line(choice),
        "settings": recipe_settings(choice),
        "roles": recipe_roles(choice),
        "today": judges_today(choice=choice),
        "notices": [*_older_champions(), *_notices(choice)],
    }
    return render(request, "evaluation/judges/profile_detail.html", context)


def _older_champions() -> list[str]:
    """Return a notice if today's judge would be asked with prompts written for older definitions."""
    active = Criterion.objects.filter(state=Criterion.State.ACTIVE)
    return notices_of(older_champions(list(active)).values())


def _notices(choice: JudgeSpec) -> list[str]:
    """Return what to know of the recipe's models; "today's judge" names an unusable endpoint."""
    try:
        return model_notices(choice=choice, endpoint=judge_endpoint(choice))
    except InputProblem:
        return []


@permission_or_404("labeling.start_runs")
@require_http_methods(["GET", "POST"])
def profile_new(request: HttpRequest) -> HttpResponse:
    """Create a profile."""
    return _form(request, ProfileForm(request.POST or None), None)


@permission_or_404("labeling.start_runs")
@require_http_methods(["GET", "POST"])
def profile_edit(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Edit a profile; an unreadable recipe starts from the default one."""
    profile = get_object_or_404(JudgeProfile, pk=profile_id)
    try:
        choice = profile_choice(profile)
    except FieldProblem:
        choice = None
    return _form(request, ProfileForm(request.POST or None, name=profile.name, choice=choice), profile)


@permission_or_404("labeling.start_runs")
@require_POST
def profile_act(request: HttpRequest, profile_id: int, act: str) -> HttpResponse:
    """Duplicate, delete or make default; then show the list, or the copy's form."""
    acts: dict[str, Callable[[HttpRequest, JudgeProfile], HttpResponse]] = {
        "duplicate": _duplicate,
        "delete": _delete,
        "default": _make_default,
    }
    profile = get_object_or_404(JudgeProfile, pk=profile_id)
    if act not in acts:
        raise Http404
    return acts[act](request, profile)


def _form(request: HttpRequest, form: ProfileForm, profile: JudgeProfile | None) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        try:
            name, by = form.cleaned_data["name"], cast(User, request.user)
            saved = profile_save(name=name, choice=form.choice, profile=profile, by=by)
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, f"Profile {saved.name} saved. New runs use these settings.")
            return redirect("evaluation:profile_detail", saved.pk)
    return render(request, "evaluation/judges/profile_form.html", {"form": form, "profile": profile})


def _duplicate(request: HttpRequest, profile: JudgeProfile) -> HttpResponse:
    copy = profile_duplicate(profile=profile, by=cast(User, request.user))
    messages.success(request, f"Profile {copy.name} created. Rename it and change its settings.")
    return redirect("evaluation:profile_edit", copy.pk)


def _delete(request: HttpRequest, profile: JudgeProfile) -> HttpResponse:
    try:
        profile_delete(profile=profile, by=cast(User, request.user))
    except ProfileRefused as refused:
        messages.error(request, f"Not deleted: {refused}.")
        return redirect("evaluation:profile_detail", profile.pk)
    messages.success(request, f"Profile {profile.name} deleted. Its judges and runs are kept.")
    return redirect("evaluation:profile_list")


def _make_default(request: HttpRequest, profile: JudgeProfile) -> HttpResponse:
    profile_make_default(profile=profile, by=cast(User, request.user))
    messages.success(request, f"{profile.name} is now the default profile.")
    return redirect("evaluation:profile_detail", profile.pk)


@permission_or_404("labeling.start_runs")
@require_POST
def profile_endpoint(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Let the default profile ask an endpoint."""
    endpoint = get_object_or_404(ConnectedEndpoint, pk=endpoint_id)
    try:
        row = endpoint_use_by_default(endpoint=endpoint, by=cast(User, request.user))
    except ProfileRefused as problem:
        messages.error(request, f"Not done: {problem}.")
    else:
        messages.success(request, f"The default profile {row.name} asks {endpoint.name} from now on.")
    return redirect("evaluation:endpoint_detail", endpoint.pk)
