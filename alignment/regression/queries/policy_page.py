"""The gate's policies as pages and API show them: every limit in words and numbers."""

from dataclasses import dataclass
from typing import Any, Literal

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.tests import gate_policy

Unit = Literal["level", "points", "share", "chats", "times", "yes"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One parameter of the gate: its name, what it says, and in what it counts."""

    name: str
    words: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class Limits:
    """Parameters that belong to one rule."""

    rule: str
    limits: tuple[Limit, ...]


LIMITS = (
    Limits(
        "Several criteria",
        (
            Limit("family_alpha", "One criterion got worse (Holm over all): fails at a p value of", "level"),
            Limit("pooled_alpha", "The mean over criteria got worse: fails at a p value of", "level"),
            Limit("pooled_margin", "A loss of the mean that has to be ruled out to pass", "points"),
            Limit("largest_drop", "The largest drop of one criterion that may pass", "points"),
        ),
    ),
    Limits(
        "One criterion by itself",
        (
            Limit("single_alpha", "It got worse: fails at a p value of", "level"),
            Limit("single_minimum", "Labelled chats without which it cannot pass", "chats"),
            Limit("single_margin", "A loss that has to be ruled out to pass", "points"),
            Limit("single_many", "From so many labelled chats on the smaller margin holds", "chats"),
            Limit("single_margin_many", "The smaller margin", "points"),
        ),
    ),
    Limits(
        "Every test",
        (
            Limit("bound_alpha", "Losses are ruled out with this chance of error", "level"),
            Limit(
                "class_alpha", "A person looks where chats of one answer get worse, at this level", "level"
            ),
            Limit("class_minimum", "Chats of that answer which this needs", "chats"),
            Limit("floor", "Least TPR and TNR of the candidate", "share"),
            Limit("ceiling_gap", "Balanced accuracy may lie under the human ceiling by", "points"),
            Limit("largest_left_out", "Labelled chats that may lack a verdict because calls failed", "share"),
            Limit(
                "openings_warning", "Openings of a holdout for one criterion from which pages warn", "times"
            ),
        ),
    ),
    Limits(
        "People",
        (
            Limit("confirm", "A fail is final only after a second run of the candidate", "yes"),
            Limit("authors_release", "Authors, too, may release what passed", "yes"),
        ),
    ),
)


def in_words(limit: Limit, value: Any) -> str:
    """A limit's value with its unit.

    >>> in_words(Limit("floor", "Least", "share"), 0.7)
    '70%'
    >>> in_words(Limit("confirm", "Twice", "yes"), False)
    'no'
    """
    if limit.unit == "yes":
        return "yes" if value else "no"
    if limit.unit == "points":
        return f"{100 * value:g} points"
    if limit.unit == "share":
        return f"{100 * value:g}%"
    return f"{value:,} chats" if limit.unit == "chats" else f"{value:g}"


def policy_chosen() -> Policy | None:
    """The newest policy that a person made, which is in force; None as long as the start values are.

    What a file brought along for one test (regress --policy) comes into force for no other.
    """
    rows = Policy.objects.filter(kind=Policy.Kind.GATE, created_by__isnull=False)
    return rows.select_related("created_by").order_by("-id").first()


def policies_page() -> dict[str, Any]:
    """The template context: the policy in force with its limits, and every version with what it changed."""
    rows = list(Policy.objects.filter(kind=Policy.Kind.GATE).select_related("created_by").order_by("-id"))
    current = policy_chosen() or _start(rows)
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
    """A policy as the API answers it."""
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


def _start(rows: list[Policy]) -> Policy:
    """The start values, stored or not yet."""
    start = GatePolicy()
    stored = (row for row in rows if (row.name, row.version) == (start.name, start.version))
    return next(
        stored,
        Policy(name=start.name, version=start.version, parameters=start.as_json()),
    )


def _value(row: Policy, limit: Limit) -> str:
    return in_words(limit, getattr(gate_policy(row), limit.name))


def _before(row: Policy, older: list[Policy]) -> dict[str, Any]:
    """The version that this one followed; of a policy by another name the start values."""
    same = next((one for one in older if one.name == row.name), None)
    return same.parameters if same else GatePolicy().as_json()


def _changes(row: Policy, before: dict[str, Any]) -> list[dict[str, str]]:
    """What differs, limit by limit, in words."""
    return [
        {
            "words": limit.words,
            "before": in_words(limit, before[limit.name]),
            "after": in_words(limit, row.parameters[limit.name]),
        }
        for group in LIMITS
        for limit in group.limits
        if row.parameters.get(limit.name, before[limit.name]) != before[limit.name]
    ]
