"""Stored policies of the gate: start values, then versions that people make."""

from typing import Any

from django.db import transaction

from alignment.core.regression import GatePolicy
from alignment.models.regressions import Policy
from labeling.core.problems import InputProblem
from labeling.models.people import User


def policy_in_force() -> Policy:
    """The newest stored policy; the start values where nobody has made one."""
    newest = Policy.objects.filter(kind=Policy.Kind.GATE).order_by("-id").first()
    return newest or policy_ensure(GatePolicy())


def policy_ensure(policy: GatePolicy) -> Policy:
    """The row of these very limits under this name and version.

    Raises InputProblem where name and version stand for other limits already.
    """
    row, _ = Policy.objects.get_or_create(
        kind=Policy.Kind.GATE,
        name=policy.name,
        version=policy.version,
        defaults={"parameters": policy.as_json()},
    )
    if row.parameters != policy.as_json():
        raise InputProblem(f"the policy {policy.label} has other limits already: give it another version")
    return row


@transaction.atomic
def policy_revise(*, changes: dict[str, Any], reason: str, by: User) -> Policy:
    """Make the next version of the policy in force.

    Raises FieldProblem for a limit out of its range, InputProblem without a reason.
    """
    if not reason.strip():
        raise InputProblem("a change of the policy needs a reason")
    current = Policy.objects.select_for_update().get(pk=policy_in_force().pk)
    changed = GatePolicy.from_json(current.parameters | changes | {"version": current.version + 1})
    return Policy.objects.create(
        name=changed.name,
        version=changed.version,
        parameters=changed.as_json(),
        reason=reason,
        created_by=by,
    )
