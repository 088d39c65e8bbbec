"""Stored policies of the gate: start values and revisions."""

from typing import Any

from django.db import transaction
from django.db.models import Max

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.policy_page import policy_revised, start_values
from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.services.audit import audit


def policy_in_force() -> Policy:
    """Return the current policy: the newest revision, or the start values."""
    return policy_revised() or policy_ensure(start_values(Policy.objects.filter(kind=Policy.Kind.GATE)))


def policy_ensure(policy: GatePolicy) -> Policy:
    """Return the row with these limits under this name and version, created if missing.

    Raises InputProblem if name and version already have other limits.
    """
    row, _ = Policy.objects.get_or_create(
        kind=Policy.Kind.GATE,
        name=policy.name,
        version=policy.version,
        defaults={"parameters": policy.as_json()},
    )
    if row.parameters != policy.as_json():
        raise InputProblem(f"the policy {policy.label} exists with other limits: change the version")
    return row


@transaction.atomic
def policy_revise(*, changes: dict[str, Any], reason: str, by: User, base: Policy | None = None) -> Policy:
    """Create the next version of the current policy; `base` is the version that the form showed.

    Raises FieldProblem for a limit out of range; InputProblem without a reason or a change, or if the policy
    has changed since `base`.
    """
    if not reason.strip():
        raise InputProblem("enter a reason for the change")
    current = Policy.objects.select_for_update().get(pk=policy_in_force().pk)
    # Another revision may have been stored before this one got the lock.
    newest = policy_in_force()
    shown = base or current
    if (newest.name, newest.version) != (shown.name, shown.version):
        raise InputProblem(f"the policy has changed: {newest} is current. Open the form again")
    version = 1 + max(current.version, _newest_version(changes.get("name", current.name)))
    changed = GatePolicy.from_json(current.parameters | changes | {"version": version})
    if changed.as_json() == current.parameters | {"version": changed.version}:
        raise InputProblem("no limit was changed")
    row = Policy.objects.create(
        name=changed.name,
        version=changed.version,
        parameters=changed.as_json(),
        reason=reason.strip(),
        created_by=by,
    )
    limits = {
        name: {"old": current.parameters.get(name), "new": value}
        for name, value in row.parameters.items()
        if current.parameters.get(name) != value
    }
    audit(actor=by, verb="policy revised", obj=row, changes=limits, reason=row.reason)
    return row


def _newest_version(name: Any) -> int:
    """Return the last version of a policy name; 0 for a new name."""
    named = Policy.objects.filter(kind=Policy.Kind.GATE, name=name) if isinstance(name, str) else None
    return int(named.aggregate(last=Max("version"))["last"] or 0) if named is not None else 0
