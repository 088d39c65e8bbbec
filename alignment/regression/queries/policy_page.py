"""Gate policies on pages and in the API, with a description of each limit."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.tests import gate_policy

Unit = Literal["level", "points", "share", "chats", "times", "yes"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One parameter of the gate: name, description and unit."""

    name: str
    words: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class Limits:
    """Parameters of one rule."""

    rule: str
    limits: tuple[Limit, ...]


LIMITS = (
    Limits(
        "Several criteria",
        (
            Limit("family_alpha", "Fail if one criterion got worse (Holm over all), at p", "level"),
            Limit("pooled_alpha", "Fail if the mean over criteria got worse, at p", "level"),
            Limit("pooled_margin", "Loss of the mean to rule out", "points"),
            Limit("largest_drop", "Largest drop of one criterion", "points"),
        ),
    ),
    Limits(
        "One criterion alone",
        (
            Limit("single_alpha", "Fail if it got worse, at p", "level"),
            Limit("single_minimum", "Labelled chats needed to pass", "chats"),
            Limit("single_margin", "Loss to rule out", "points"),
        ),
    ),
    Limits(
        "Every test",
        (
            Limit("bound_alpha", "Error level for ruling out losses", "level"),
            Limit(
                "class_alpha",
                "Inconclusive if human True or human False got worse, at p (half for each)",
                "level",
            ),
            Limit("floor", "Minimum TPR and TNR if worse than the champion", "share"),
            Limit("ceiling_gap", "Largest gap to the human ceiling if worse than the champion", "points"),
            Limit("largest_left_out", "Labelled chats without a verdict, at most", "share"),
            Limit("openings_warning", "Warn after this many uses of the holdout", "times"),
        ),
    ),
    Limits(
        "Releases",
        (
            Limit("confirm", "Confirm a fail with a second run of the candidate", "yes"),
            Limit("authors_release", "Authors may release candidates that passed", "yes"),
        ),
    ),
)
# Limits of version 1, for the changes of stored versions.
EARLIER_LIMITS = (
    Limit("single_many", "Labelled chats for the smaller margin", "chats"),
    Limit("single_margin_many", "Smaller loss to rule out", "points"),
    Limit("class_minimum", "Chats with one human answer needed", "chats"),
)


def in_words(limit: Limit, value: Any) -> str:
    """Format a limit with its unit; None is a limit that a version does not have.

    >>> in_words(Limit("floor", "Least", "share"), 0.7)
    '70%'
    >>> in_words(Limit("confirm", "Twice", "yes"), False)
    'no'
    """
    if value is None:
        return "none"
    if limit.unit == "yes":
        return "yes" if value else "no"
    if limit.unit == "points":
        return f"{100 * value:g} points"
    if limit.unit == "share":
        return f"{100 * value:g}%"
    return f"{value:,} chats" if limit.unit == "chats" else f"{value:g}"


def policy_revised() -> Policy | None:
    """Return the newest policy that a user created, the current one; None while the start values apply."""
    return Policy.objects.revised()


def start_values(stored: Iterable[Policy]) -> GatePolicy:
    """Return the start values under the first version that is free or already theirs.

    stored : the stored policies. A lead or a policy file may have used the version for other limits.
    """
    start = GatePolicy()
    taken = {row.version: row.parameters for row in stored if row.name == start.name}
    while taken.get(start.version, start.as_json()) != start.as_json():
        start = replace(start, version=start.version + 1)
    return start


def policy_start(stored: Iterable[Policy]) -> Policy:
    """Return the start values: the stored row, or a new one that is not stored."""
    start, rows = start_values(stored), list(stored)
    new = Policy(kind=Policy.Kind.GATE, name=start.name, version=start.version, parameters=start.as_json())
    return next((row for row in rows if (row.name, row.version) == (new.name, new.version)), new)


def policy_current() -> Policy:
    """Return the policy in force; the start values may not be stored yet."""
    return policy_revised() or policy_start(Policy.objects.filter(kind=Policy.Kind.GATE))


def policies_page() -> dict[str, Any]:
    """Return the template context: limits of the current policy, and the changes of every version."""
    rows = list(Policy.objects.filter(kind=Policy.Kind.GATE).select_related("created_by").order_by("-id"))
    current = policy_revised() or policy_start(rows)
    shown = rows or [current]
    return {
        "current": current,
        "rules": [
            {"rule": group.rule, "limits": [(limit, _value(current, limit)) for limit in group.limits]}
            for group in LIMITS
        ],
        "versions": [
            {"policy": row, "changes": _changes(row, _before(row, shown[n + 1 :]))}
            for n, row in enumerate(shown)
        ],
    }


def policy_body(row: Policy, *, in_force: bool) -> dict[str, Any]:
    """Return a policy for the API."""
    return {
        "id": row.pk,
        "name": row.name,
        "version": row.version,
        "in_force": in_force,
        "parameters": row.parameters,
        "reason": row.reason,
        "created_by": row.created_by.get_username() if row.created_by else None,
        "created_at": row.created_at,
    }


def _value(row: Policy, limit: Limit) -> str:
    return in_words(limit, getattr(gate_policy(row), limit.name))


def _before(row: Policy, older: list[Policy]) -> dict[str, Any]:
    """Return the parameters of the previous version; the start values for a new name."""
    same = next((one for one in older if one.name == row.name), None)
    return same.parameters if same else GatePolicy().as_json()


def _changes(row: Policy, before: dict[str, Any]) -> list[dict[str, str]]:
    """Return the changed limits."""
    return [
        {
            "words": limit.words,
            "before": in_words(limit, before.get(limit.name)),
            "after": in_words(limit, row.parameters.get(limit.name)),
        }
        for limit in (*(limit for group in LIMITS for limit in group.limits), *EARLIER_LIMITS)
        if row.parameters.get(limit.name) != before.get(limit.name)
    ]
