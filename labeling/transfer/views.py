"""Pages of imports: the list, a new one, and the steps of one import."""

from collections.abc import Iterator
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.downloads import table_file
from common.problems import InputProblem
from labeling.models.chats import ChatSet, Split
from labeling.models.imports import PROBLEMS_STORED, DataImport
from labeling.models.people import User
from labeling.models.rubric import Rubric
from labeling.transfer.core.chat_rows import ROLES
from labeling.transfer.core.columns import CRITERION, targets_of
from labeling.transfer.core.tables import DELIMITERS, FORMATS, PLACES
from labeling.transfer.core.templates import TEMPLATE_FORMATS, formats_of, template_of
from labeling.transfer.queries.data_imports import (
    columns_of,
    example_text,
    import_kinds,
    preview_of,
    progress_of,
    saved_mapping,
)
from labeling.transfer.services.data_imports import (
    check_start,
    criteria_choices,
    data_import_create,
    data_import_discard,
    mapping_save,
    store_start,
    tool_map_of,
    work_cancel,
)
from labeling.transfer.services.importers import TOOLS
from labeling.transfer.services.undo import is_small, undo_refusal, undo_start

RIGHT = "labeling.manage_labeling"
IMPORTS_A_PAGE, PROBLEMS_A_PAGE = 50, 100
STEPS = ("File", "Columns", "Problems", "Import", "Result")
State = DataImport.State
AT_STEP = {
    State.DRAFT: 2,
    State.CHECKING: 3,
    State.CHECKED: 3,
    State.IMPORTING: 4,
    State.DONE: 5,
    State.UNDONE: 5,
}

PAGES = {
    State.DRAFT: "columns",
    State.CHECKING: "work",
    State.CHECKED: "checked",
    State.IMPORTING: "work",
    State.DONE: "result",
    State.UNDONE: "result",
}


@permission_or_404(RIGHT)
@require_safe
def import_list(request: HttpRequest) -> HttpResponse:
    """All imports, newest first."""
    rows = DataImport.objects.select_related("by", "undone_by").defer("problems", "columns").order_by("-pk")
    kinds = import_kinds()
    page = Paginator(rows, IMPORTS_A_PAGE).get_page(request.GET.get("page"))
    shown = [(row, kinds[row.kind]) for row in page if row.kind in kinds]
    return render(request, "labeling/transfer/list.html", {"rows": shown, "page_obj": page})


@permission_or_404(RIGHT)
@require_http_methods(["GET", "POST"])
def import_new(request: HttpRequest) -> HttpResponse:
    """Choose what to import, and the file; `kind` of the query string chooses for the user."""
    kinds = import_kinds()
    chosen = request.POST.get("kind") or request.GET.get("kind", "")
    kind = kinds.get(chosen) or next(iter(kinds.values()))
    problem = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        if getattr(request, "upload_too_large", False):
            problem = f"The file is larger than {settings.LACE_IMPORT_MB} MB."
        elif not isinstance(file, UploadedFile):
            problem = "Choose a file."
        else:
            try:
                row = data_import_create(
                    kind=kind, name=file.name or "", chunks=file.chunks(), by=_user(request)
                )
                return redirect("labeling:import_detail", row.pk)
            except InputProblem as refused:
                problem = str(refused)
    context = {
        "kinds": [(one, formats_of(one)) for one in kinds.values()],
        "formats": FORMATS,
        "kind": kind,
        "problem": problem,
        "limit": settings.LACE_IMPORT_MB,
    }
    return render(request, "labeling/transfer/new.html", context)


@permission_or_404(RIGHT)
@require_safe
def import_template(request: HttpRequest, import_kind: str, form: str) -> HttpResponse:
    """A file to fill in."""
    kind = import_kinds().get(import_kind)
    if kind is None or form not in formats_of(kind):
        raise Http404
    return HttpResponse(
        template_of(kind, form),
        content_type=TEMPLATE_FORMATS[form],
        headers={"Content-Disposition": f'attachment; filename="{kind.key}.{form}"'},
    )


@permission_or_404(RIGHT)
@require_safe
def import_detail(request: HttpRequest, import_id: int) -> HttpResponse:
    """One import at the step that it has reached."""
    row = get_object_or_404(DataImport.objects.select_related("by", "undone_by"), pk=import_id)
    kind = import_kinds().get(row.kind)
    if kind is None:
        raise Http404
    step, at_work = AT_STEP[State(row.state)], False
    context: dict[str, Any] = {
        "row": row,
        "kind": kind,
        "step": step,
        "steps": list(enumerate(STEPS if kind.has_columns else (STEPS[0], "Chat set", *STEPS[2:]), 1)),
        "format": FORMATS[row.source["format"]],
        "delimiter": DELIMITERS.get(row.source["delimiter"], ""),
        "place": PLACES[row.source["format"]],
        "left_out": [name for name, key in row.mapping["columns"].items() if not key],
    }
    if row.state == State.DRAFT:
        context |= _columns(row)
    elif row.state == State.CHECKED:
        context["page_obj"] = Paginator(row.problems, PROBLEMS_A_PAGE).get_page(request.GET.get("page"))
        context["stored"] = PROBLEMS_STORED
        context["preview"] = preview_of(row, kind)
    elif at_work := row.undoing or row.state in (State.CHECKING, State.IMPORTING):
        context["progress"] = progress_of(row)
    else:
        name = row.options.get("set")
        context["chat_set"] = ChatSet.objects.filter(name=name).first() if name else None
        # A worker says so for a large one.
        context["refusal"] = undo_refusal(row) if row.state == State.DONE and is_small(row) else ""
    if request.headers.get("HX-Request") and at_work:
        return render(request, "labeling/transfer/_progress.html", context)
    page = "work" if at_work else PAGES[State(row.state)]
    response = render(request, f"labeling/transfer/{page}.html", context)
    if request.headers.get("HX-Request"):
        response["HX-Refresh"] = "true"
    return response


@permission_or_404(RIGHT)
@require_POST
def import_columns(request: HttpRequest, import_id: int) -> HttpResponse:
    """Keep what the columns are; then show the preview, or check the file (`check`)."""
    row = get_object_or_404(DataImport, pk=import_id)
    try:
        row = mapping_save(
            row=row,
            columns={
                column.name: request.POST.get(f"column-{n}", "") for n, column in enumerate(columns_of(row))
            },
            speakers=dict(
                zip(request.POST.getlist("speaker"), request.POST.getlist("speaker_is"), strict=False)
            ),
            options=_options(request),
        )
        if "check" in request.POST:
            check_start(row=row, by=_user(request))
    except InputProblem as problem:
        messages.error(request, str(problem))
    return redirect("labeling:import_detail", import_id)


@permission_or_404(RIGHT)
@require_POST
def import_start(request: HttpRequest, import_id: int) -> HttpResponse:
    """Write a checked import."""
    row = get_object_or_404(DataImport, pk=import_id)
    try:
        store_start(row=row, skip="skip" in request.POST)
    except InputProblem as problem:
        messages.error(request, str(problem))
    return redirect("labeling:import_detail", import_id)


@permission_or_404(RIGHT)
@require_POST
def import_change(request: HttpRequest, import_id: int) -> HttpResponse:
    """Go back to the columns."""
    row = get_object_or_404(DataImport, pk=import_id)
    try:
        mapping_save(
            row=row,
            columns=row.mapping["columns"],
            speakers=row.mapping["speakers"],
            options=row.options,
        )
    except InputProblem as problem:
        messages.error(request, str(problem))
    return redirect("labeling:import_detail", import_id)


@permission_or_404(RIGHT)
@require_POST
def import_cancel(request: HttpRequest, import_id: int) -> HttpResponse:
    """Stop the check or the import."""
    work_cancel(row=get_object_or_404(DataImport, pk=import_id))
    return redirect("labeling:import_detail", import_id)


@permission_or_404(RIGHT)
@require_POST
def import_discard(request: HttpRequest, import_id: int) -> HttpResponse:
    """Delete an import that was not written, with its file."""
    row = get_object_or_404(DataImport, pk=import_id)
    try:
        data_import_discard(row=row)
    except InputProblem as problem:
        messages.error(request, str(problem))
        return redirect("labeling:import_detail", import_id)
    messages.success(request, f"{row.file_name} discarded. Nothing was imported.")
    return redirect("labeling:import_list")


@permission_or_404(RIGHT)
@require_POST
def import_undo(request: HttpRequest, import_id: int) -> HttpResponse:
    """Take back what an import wrote."""
    row = get_object_or_404(DataImport, pk=import_id)
    try:
        done = undo_start(row=row, by=_user(request))
    except InputProblem as problem:
        messages.error(request, f"Not undone. {problem}")
    else:
        if done:
            messages.success(request, f"The import of {row.file_name} is undone.")
    return redirect("labeling:import_detail", import_id)


@permission_or_404(RIGHT)
@require_safe
def import_problems(request: HttpRequest, import_id: int) -> HttpResponse:
    """The stored problems as a table."""
    row = get_object_or_404(DataImport, pk=import_id)
    return table_file(row.problems, ("number", "field", "message"), name=f"import-{row.pk}-problems.csv")


def _user(request: HttpRequest) -> User:
    return cast(User, request.user)


def _options(request: HttpRequest) -> dict[str, Any]:
    """Return where the lines go, as the form says."""
    post = request.POST
    options: dict[str, Any] = {
        name: post.get(name, "").strip()
        for name in ("rubric", "rubric_name", "rater", "judge", "tool")
        if post.get(name, "").strip()
    }
    chosen, new = post.get("set", ""), post.get("new_set", "").strip()
    if chosen == "new":
        options["set"] = new
    elif chosen.isdecimal() and len(chosen) < 19:
        row = ChatSet.objects.filter(pk=int(chosen)).first()
        options |= {"set": row.name} if row else {}
        options.pop("rubric", None)
    shares = {name: post.get(f"share_{name}", "").strip() for name in Split.values}
    if any(shares.values()):
        given = {name: share for name, share in shares.items() if share and share != "0"}
        options["split"] = (
            next(iter(given))
            if len(given) == 1 and "100" in given.values()
            else ",".join(f"{name}={share}" for name, share in given.items())
        )
    if "replace_accounts" in post:
        options["replace_accounts"] = True
    if options.get("tool"):
        options["tool_map"] = tool_map_of(post.get("tool_map", ""))
    return options


def _columns(row: DataImport) -> dict[str, Any]:
    """Return what the step of the columns shows."""
    kind = import_kinds()[row.kind]
    targets = [(target.key, target.label) for target in targets_of(kind)]
    if kind.wide:
        targets += [(f"{CRITERION}{key}", f"Answer to {key}") for key in criteria_choices()]
    mapping = row.mapping
    columns = [
        (n, column, mapping["columns"].get(column.name, "")) for n, column in enumerate(columns_of(row))
    ]
    words = dict.fromkeys(word for _, column, key in columns if key == "speaker" for word in column.words)
    speakers = [(word, mapping["speakers"].get(word, "")) for word in words]
    saved = saved_mapping(kind=kind.key, columns=columns_of(row))
    preview = preview_of(row, kind)
    names = list(dict.fromkeys(name for line in preview.lines for name in line))
    return {
        "columns": columns,
        "targets": targets,
        "speakers": speakers,
        "unknown_speakers": not all(role for _, role in speakers),
        "roles": list(ROLES.items()),
        "saved": saved if saved and saved.mapping == mapping else None,
        "preview": preview,
        "names": names,
        "cells": [[example_text(line.get(name, "")) for name in names] for line in preview.lines],
        "sets": ChatSet.objects.exclude(kind=ChatSet.Kind.SAMPLE).order_by("name"),
        "rubrics": Rubric.objects.order_by("name"),
        "shares": list(_shares(row.options.get("split", ""))),
        "tools": list(TOOLS),
        "tool_map": example_text(row.options.get("tool_map", "")),
        "wants_set": "set" in row.options,
        "set_name": row.options.get("set", ""),
        "is_known": ChatSet.objects.filter(name=row.options.get("set", "")).exists(),
    }


def _shares(split: str) -> Iterator[tuple[str, str]]:
    """Yield the share of each split as the form shows it."""
    given = dict(part.split("=", 1) for part in split.split(",") if "=" in part)
    if not given:
        given = {split or Split.DEV.value: "100"}
    for name in Split.values:
        yield name, given.get(name, "0")
