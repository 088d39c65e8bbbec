"""Template tags of session scores: a score with its notes, and the plot of judge against raters."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from alignment.session_scores.core import SessionScore
from alignment.templatetags.statistics import drawn
from common import plots
from common.templatetags.display import estimate, number

register = template.Library()


# Mark and kind of answer of each source.
SOURCES = {"judge": ("j", "verdict"), "human": ("p", "label")}


@register.simple_tag
def session_score(score: SessionScore, source: str) -> SafeString:
    """Show a chat's score by `judge` or `human`, its parts, and whether it is partial."""
    mark, answer = SOURCES[source]
    notes = [f"{score.passed} of {score.applicable} pass"]
    if score.value is None:
        notes = ["no criterion applies"]
    elif score.critical_failed:
        notes = ["a critical criterion fails"]
    if score.missing:
        missing = f"{score.missing} {answer}{'' if score.missing == 1 else 's'} missing"
        notes.append(f"partial: {missing}" if score.partial else missing)
    value = number(score.value, notes[0])
    return format_html('<span class="{}">{}</span> <small>{}</small>', mark, value, ", ".join(notes))


@register.inclusion_tag("alignment/session_scores/_scatter.html")
def score_scatter(score: Mapping[str, Any]) -> dict[str, Any]:
    """Plot a report's chats by human and judge score."""
    cells: Sequence[tuple[float, float, int]] = [(human, judge, n) for human, judge, n in score["pairs"]]
    return {"drawing": plots.scatter(cells, case="chats"), "n": score["n"]}


@register.simple_tag
def score_lane(score: Mapping[str, Any]) -> SafeString:
    """Plot the judge's mean score with its interval; the tick is the raters' mean."""
    lane = plots.Lane(
        "Mean session score: judge",
        estimate(score["judge"]),
        css="judge",
        big=True,
        tick=estimate(score["human"]),
        tick_name="raters",
    )
    return drawn((lane,), padding=20)
