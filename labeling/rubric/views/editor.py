"""Pages of rubrics: list, new rubric, one rubric with its dimensions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Dimension, Rubric
from labeling.rubric.core.rubric import RubricSpec
from labeling.rubric.forms import RubricForm
from labeling.rubric.queries.editor import default_rubric, edited_rubric, offered_criteria, rubric_rows
from labeling.rubric.services.dimensions import (
    dimension_add,
    dimension_remove,
    dimension_rename,
    dimensions_order,
)
from labeling.rubric.services.rubric import StoredRubric, rubric_create, rubric_extend, rubric_rename


@permission_or_404("labeling.edit_prompts")
@require_safe
def rubric_list(request: HttpRequest) -> HttpResponse:
    """All rubrics."""
    return render(request, "labeling/rubric/rubric_list.html", {"rows": rubric_rows()})


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def rubric_new(request: HttpRequest) -> HttpResponse:
    """A rubric from ticked criteria of the default one, or an empty one."""
    return _from_default(request, None)


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def rubric_defaults(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """More criteria of the default rubric, for a rubric that exists."""
    return _from_default(request, get_object_or_404(Rubric, pk=rubric_id))


def _from_default(request: HttpRequest, rubric: Rubric | None) -> HttpResponse:
    offered = offered_criteria()
    free = [one.spec.key for _, criteria in offered for one in criteria if not one.taken]
    form = RubricForm(request.POST if request.method == "POST" else None, keys=free, named=rubric is None)
    if request.method == "POST" and form.is_valid():
        try:
            stored = _store(form, rubric, cast(User, request.user))
        except FieldProblem as problem:
            form.add_error("name" if problem.field == "name" else None, problem.message)
        else:
            messages.success(request, _created(stored, new=rubric is None))
            return redirect("labeling:rubric_detail", stored.rubric.pk)
    ticked = form.data.getlist("criteria") if isinstance(form.data, QueryDict) else []
    context = {"form": form, "offered": offered, "ticked": ticked, "rubric": rubric, "free": free}
    return render(request, "labeling/rubric/rubric_new.html", context)


def _store(form: RubricForm, rubric: Rubric | None, by: User) -> StoredRubric:
    """Create the rubric, or extend it, by what is ticked. Raises FieldProblem."""
    name, reason = form.cleaned_data.get("name", ""), "From the default rubric"
    spec = _ticked(name, set(form.cleaned_data["criteria"]))
    if rubric is None:
        return rubric_create(spec=spec, reason=reason, by=by)
    return rubric_extend(rubric=rubric, spec=spec, reason=reason, by=by)


def _created(stored: StoredRubric, *, new: bool) -> str:
    count, name = len(stored.created), stored.rubric.name
    criteria = f"{count} criteri{pluralize(count, 'on,a')}"
    if not new:
        return f"{criteria} added, each with its first prompt."
    return f"{name} created with {criteria}." if count else f"{name} created. Add its first criterion."


def _ticked(name: str, keys: set[str]) -> RubricSpec:
    """Return the default rubric with these criteria and their dimensions only."""
    spec = default_rubric()
    criteria = tuple(one for one in spec.criteria if one.key in keys)
    used = {one.dimension for one in criteria}
    dimensions = tuple(one for one in spec.dimensions if one.key in used or not keys)
    return replace(spec, name=name.strip(), dimensions=dimensions, criteria=criteria)


@permission_or_404("labeling.edit_prompts")
@require_safe
def rubric_detail(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """The criteria of a rubric by dimension; leads change them here."""
    return _page(request, get_object_or_404(Rubric, pk=rubric_id))


def _page(request: HttpRequest, rubric: Rubric, *, refused: dict[str, Any] | None = None) -> HttpResponse:
    """Render a rubric; `refused` is a form that was not accepted: its act, dimension, name and problem."""
    edited = edited_rubric(rubric)
    context = {"edited": edited, "order": ",".join(map(str, edited.order)), "refused": refused}
    return render(request, "labeling/rubric/rubric_detail.html", context)


@permission_or_404("labeling.manage_labeling")
@require_POST
def rubric_renamed(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """Rename a rubric."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)

    def rename() -> str:
        name, seen = request.POST.get("name", ""), request.POST.get("seen", "")
        row = rubric_rename(rubric=rubric, name=name, seen=seen, by=cast(User, request.user))
        return f"The rubric is called {row.name}."

    return _done(request, rubric, rename, act="rubric")


@permission_or_404("labeling.manage_labeling")
@require_POST
def rubric_dimension_add(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """Add a dimension."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)

    def add() -> str:
        row = dimension_add(name=request.POST.get("name", ""), by=cast(User, request.user))
        return f"Dimension {row.name} added."

    return _done(request, rubric, add, act="add")


@permission_or_404("labeling.manage_labeling")
@require_POST
def rubric_dimension_act(request: HttpRequest, rubric_id: int, dimension_id: int, act: str) -> HttpResponse:
    """Rename a dimension, move it up or down, or remove it; `act` is one of the route's words."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    dimension = get_object_or_404(Dimension, pk=dimension_id)
    return _done(request, rubric, lambda: ACTS[act](request, dimension), act=act, dimension=dimension.pk)


def _rename(request: HttpRequest, dimension: Dimension) -> str:
    name, seen = request.POST.get("name", ""), request.POST.get("seen", "")
    row = dimension_rename(dimension=dimension, name=name, seen=seen, by=cast(User, request.user))
    return f"The dimension is called {row.name}."


def _up(request: HttpRequest, dimension: Dimension) -> str:
    return _move(request, dimension, -1)


def _down(request: HttpRequest, dimension: Dimension) -> str:
    return _move(request, dimension, 1)


def _move(request: HttpRequest, dimension: Dimension, by: int) -> str:
    seen = [
        int(part) for part in request.POST.get("seen", "").split(",") if part.isascii() and part.isdigit()
    ]
    if dimension.pk not in seen:
        raise FieldProblem("order", "Somebody changed the dimensions meanwhile. This is the order now.")
    place = seen.index(dimension.pk)
    other = min(max(place + by, 0), len(seen) - 1)
    order = _swapped(seen, place, other)
    changed = dimensions_order(order=order, seen=seen, by=cast(User, request.user))
    return f"{dimension.name} moved." if changed else ""


def _swapped(ids: Sequence[int], one: int, other: int) -> list[int]:
    order = list(ids)
    order[one], order[other] = order[other], order[one]
    return order


def _remove(request: HttpRequest, dimension: Dimension) -> str:
    dimension_remove(dimension=dimension, by=cast(User, request.user))
    return f"Dimension {dimension.name} removed."


ACTS: dict[str, Callable[[HttpRequest, Dimension], str]] = {
    "rename": _rename,
    "up": _up,
    "down": _down,
    "remove": _remove,
}


def _done(
    request: HttpRequest, rubric: Rubric, do: Callable[[], str], *, act: str, dimension: int = 0
) -> HttpResponse:
    """Do it and go back to the rubric, or show why not beside what was typed."""
    try:
        message = do()
    except FieldProblem as problem:
        name = request.POST.get("name", "")
        refused = {"act": act, "dimension": dimension, "name": name, "message": problem.message}
        return _page(request, rubric, refused=refused)
    if message:
        messages.success(request, message)
    return redirect("labeling:rubric_detail", rubric.pk)
