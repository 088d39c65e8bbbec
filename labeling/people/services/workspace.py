"""Workspace settings."""

from collections.abc import Mapping

from django.db import transaction

from labeling.models.people import User, Workspace
from labeling.people.services.audit import audit

SET_UP = "set_up_hidden"
RULES = (
    "reveal_after_submit",
    "evidence_on_false",
    "comment_required",
    "subjective_in_session_score",
    "second_factor",
)
Value = bool | str


def rules_now() -> dict[str, Value]:
    """Return the current rules."""
    row = Workspace.current()
    return {name: getattr(row, name) for name in RULES}


def workspace_change(*, rules: Mapping[str, Value], by: User) -> Workspace:
    """Set these rules; log the changed ones with old and new value in one audit event."""
    return _change({name: rules[name] for name in RULES if name in rules}, by)


def set_up_hide(*, hidden: bool, by: User) -> Workspace:
    """Hide the list of set-up steps on the leads' home, or show it again."""
    return _change({SET_UP: hidden}, by)


@transaction.atomic
def _change(values: Mapping[str, Value], by: User) -> Workspace:
    Workspace.current()
    row = Workspace.objects.select_for_update().get()
    changed = {
        name: {"old": getattr(row, name), "new": value}
        for name, value in values.items()
        if getattr(row, name) != value
    }
    if changed:
        for name, value in changed.items():
            setattr(row, name, value["new"])
        row.save(update_fields=list(changed))
        audit(actor=by, verb="settings changed", obj=row, **changed)
    return row
