"""Stored policies of the gate: start values, then versions that people make."""

from typing import Any

from django.db import transaction
from django.db.models import Max

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.policy_page import policy_chosen
from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.services.audit import audit


def policy_in_force() -> Policy:
    """The newest policy that a person made; the start values where nobody has made one."""
    return policy_chosen() or policy_ensure(GatePolicy())


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
def policy_revise(*, changes: dict[str, Any], reason: str, by: User, base: Policy | None = None) -> Policy:
    """Make the next version of the policy in force; `base` is the one that its author had before them.

    Raises FieldProblem for a limit out of its range; InputProblem without a reason or a change, and where
    another version has come into force since `base`.
    """
    if not reason.strip():
        raise InputProblem("a change of the policy needs a reason")
    current = Policy.objects.select_for_update().get(pk=policy_in_force().pk)
    # Another revision may have been stored while this one waited for the lock.
    newest = policy_in_force()
    if newest.pk != (base or current).pk:
        raise InputProblem(f"the policy was changed meanwhile: {newest} is in force")
    version = 1 + max(current.version, _newest_version(changes.get("name", current.name)))
    changed = GatePolicy.from_json(current.parameters | changes | {"version": version})
    if changed.as_json() == current.parameters | {"version": changed.version}:
        raise InputProblem("no limit differs from those in force")
    row = Policy.objects.create(
        name=changed.name,
        version=changed.version,
        parameters=changed.as_json(),
        reason=reason.strip(),
        created_by=by,
    )
    audit(actor=by, verb="policy revised", obj=row, changes=changes, reason=row.reason)
    return row


def _newest_version(name: Any) -> int:
    """The last version under a name that the policy is to have; 0 where the name is new."""
    named = Policy.objects.filter(kind=Policy.Kind.GATE, name=name) if isinstance(name, str) else None
    return int(named.aggregate(last=Max("version"))["last"] or 0) if named is not None else 0
