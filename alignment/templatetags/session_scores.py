"""Template tags of session scores: a score with its notes, and the plot of judge against raters."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from alignment.session_scores.core import SessionScore
from common import plots
from common.templatetags.display import number

register = template.Library()


@register.simple_tag
def session_score(score: SessionScore, missing: str) -> SafeString:
    """Show a chat's score, its parts, and whether it is partial; `missing` names an absent answer."""
    notes = []
    if score.value is None:
        notes.append("no criterion applies")
    elif score.critical_failed:
        notes.append("a critical criterion fails")
    else:
        notes.append(f"{score.passed} of {score.applicable} pass")
    if score.missing:
        absent = f"{score.missing} {missing}{'' if score.missing == 1 else 's'} missing"
        notes.append(f"partial: {absent}" if score.partial else absent)
    return format_html("{} <small>{}</small>", number(score.value, notes[0]), ", ".join(notes))


@register.inclusion_tag("alignment/session_scores/_scatter.html")
def score_scatter(score: Mapping[str, Any]) -> dict[str, Any]:
    """Plot a report's chats by human and judge score."""
    cells: Sequence[tuple[float, float, int]] = [(human, judge, n) for human, judge, n in score["pairs"]]
    return {"drawing": plots.scatter(cells, case="chats"), "n": score["n"]}
