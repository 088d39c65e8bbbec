"""Gate policies: versions and revision."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from alignment.regression.forms.policy import PolicyForm
from alignment.regression.queries.policy_page import policies_page, policy_current
from alignment.regression.services.policies import policy_revise
from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User


@permission_or_404("labeling.see_judge")
@require_safe
def policy_list(request: HttpRequest) -> HttpResponse:
    """Show the current policy and all versions."""
    return render(request, "alignment/regression/policy_list.html", policies_page())


@permission_or_404("labeling.release_prompts")
@require_http_methods(["GET", "POST"])
def policy_edit(request: HttpRequest) -> HttpResponse:
    """Create the next version of the current policy, with a reason."""
    current = policy_current()
    form = PolicyForm(request.POST or None, policy=current)
    if request.method == "POST" and form.is_valid():
        try:
            row = policy_revise(
                changes=form.changes,
                reason=form.cleaned_data["reason"],
                by=cast(User, request.user),
                base=form.base,
            )
        except FieldProblem as problem:
            form.add_error(problem.field, problem.message)
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, f"{row.name}, version {row.version}, applies to new tests.")
            return redirect("alignment:policy_list")
    return render(request, "alignment/regression/policy_edit.html", {"form": form, "policy": current})
