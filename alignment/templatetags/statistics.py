"""Template tags of statistics: values, outcomes and interval plots. Loaded on every page."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from alignment.comparison.core.outcomes import cell_outcome, outcome_counts, outcome_of
from alignment.reports.core.registry import BY_KEY
from common import plots
from common.templatetags.display import count, estimate, interval, number, pick, pick_path
from labeling.templatetags.labels import ANSWERS, answer_key

register = template.Library()

REMEMBERED = 10_000  # values and drawings that a process does not format again
JUDGE_LANES = (("TPR", "tpr"), ("TNR", "tnr"), ("Balanced", "balanced_accuracy"))
CEILING = "human ceiling"
RATER_LANES = (
    ("Agree", "human.percent_agreement"),
    ("AC1", "human.gwet_ac1"),
    ("Alpha", "human.krippendorff_alpha"),
)


@lru_cache(maxsize=REMEMBERED)
def drawn(lanes: tuple[plots.Lane, ...], *, goal: bool = False, padding: int = plots.PADDING) -> SafeString:
    """Return the drawing of these lanes; a report draws the same ones again each time it is opened."""
    plot = plots.plot(lanes, goal=goal, padding=padding)
    return render_to_string("common/_plot.html", {"plot": plot})


@register.simple_tag
def stat(holder: Any, path: str) -> SafeString:
    """Show a statistic; its title is the interval, or why value or interval are missing."""
    statistic = _statistic(holder, path)
    reason = pick(pick(holder, "undefined"), path) or ""
    return shown_value(estimate(statistic), reason, pick(statistic, "flag") or "")


@lru_cache(maxsize=REMEMBERED)
def shown_value(value: plots.Estimate, reason: str, flag: str) -> SafeString:
    """Show a value as `stat` does; `reason`: why value or interval are missing."""
    if value.value is None:
        return number(None, reason or "Not computed here")
    title = flag or reason
    if value.low is not None:
        title = title or f"95% interval {interval(value)}"
    if not title:
        return number(value.value)
    return format_html('<span title="{}">{}</span>', title, number(value.value))


@register.simple_tag
def outcome(value: Any, passes_when: bool) -> SafeString:
    """Show what an answer means for the chatbot: Pass or Fail."""
    answer = answer_key(value)
    if answer not in {"true", "false"}:
        return format_html('<span class="dim" title="{}">–</span>', ANSWERS.get(answer, "No outcome"))
    passed = (answer == "true") == passes_when
    return format_html('<span class="{}">{}</span>', *(("ok", "Pass") if passed else ("ko", "Fail")))


@register.simple_tag
def cell_caption(cell: str, passes_when: bool) -> SafeString:
    """Caption a cell of the confusion matrix by its outcome; the title says who let the bot pass."""
    caption = cell_outcome(cell, passes_when=passes_when).caption
    return format_html('<span title="{}">{}</span>', capfirst(caption.meaning), caption.name)


@register.simple_tag
def cell_words(cell: str, passes_when: bool, n: int) -> SafeString:
    """Count the chats of a cell of the confusion matrix: `2 missed failures (judge passed, …)`."""
    caption = cell_outcome(cell, passes_when=passes_when).caption
    return format_html("{} ({})", caption.count(n), caption.meaning)


@register.simple_tag
def outcome_cells(confusion: Mapping[str, int], passes_when: bool) -> SafeString:
    """Table cells: the chats of a confusion matrix by outcome, in the order of `Outcome`."""
    counts = outcome_counts(confusion, passes_when=passes_when).values()
    return format_html_join("", '<td class="num">{}</td>', ((count(n),) for n in counts))


@register.simple_tag
def disagreement(human: Any, verdict: Any, passes_when: bool) -> SafeString:
    """Name a disagreement by its outcome: missed failure or false alarm; '' if there is none."""
    answers = answer_key(human), answer_key(verdict)
    if answers not in {("true", "false"), ("false", "true")}:
        return SafeString("")
    said = {"human": answers[0] == "true", "judge": answers[1] == "true"}
    caption = outcome_of(**said, passes_when=passes_when).caption
    return format_html('<span class="outcome" title="{}">{}</span>', capfirst(caption.meaning), caption.name)


@register.inclusion_tag("common/_lanes.html")
def lanes(criterion: Any, judged: Any = True) -> dict[str, Any]:
    """Plot a report row: TPR, TNR and balanced accuracy; without a judge, agreement between raters."""
    named = JUDGE_LANES if judged else RATER_LANES
    ceiling = estimate(pick_path(criterion, "human.ceiling")) if judged else plots.UNDEFINED
    rows = [
        plots.Lane(
            name,
            estimate(_statistic(criterion, path)),
            css="judge" if judged else "people",
            circle=not judged,
            big=i == len(named),
            tick=ceiling if i == len(named) else plots.UNDEFINED,
            tick_name=CEILING,
        )
        for i, (name, path) in enumerate(named, start=1)
    ]
    figures = [(lane, stat(criterion, path)) for lane, (_, path) in zip(rows, named, strict=True)]
    return {"figures": figures, "plot": plots.plot(rows, goal=bool(judged))}


@register.simple_tag
def lane(criterion: Any, judged: Any = True) -> SafeString:
    """Plot the one lane of a report row: balanced accuracy with the human ceiling; without a judge, alpha."""
    name, path = ("Balanced accuracy", "balanced_accuracy") if judged else RATER_LANES[-1]
    one = plots.Lane(
        name,
        estimate(_statistic(criterion, path)),
        css="judge" if judged else "people",
        circle=not judged,
        big=True,
        tick=estimate(pick_path(criterion, "human.ceiling")) if judged else plots.UNDEFINED,
        tick_name=CEILING,
    )
    return drawn((one,), padding=20)


@register.simple_tag
def interval_plot(holder: Any, name: str, goal: bool = False, ceiling: float | None = None) -> SafeString:
    """Plot one statistic as a dot with its interval and the human ceiling as a tick."""
    lane = plots.Lane(
        BY_KEY[name].label,
        estimate(pick(holder, name)),
        css="judge",
        big=name == "balanced_accuracy",
        tick=plots.Estimate(ceiling),
        tick_name=CEILING,
    )
    return drawn((lane,), goal=goal)


@register.simple_tag
def estimates(holder: Any, paths: str) -> SafeString:
    """Table cells of several statistics: the value, its interval below."""
    cells = ((stat(holder, path), interval(_statistic(holder, path))) for path in paths.split())
    return format_html_join("", '<td class="num">{}<small>{}</small></td>', cells)


def _statistic(holder: Any, path: str) -> Any:
    """Return a statistic, with the interval that a report keeps beside a plain number."""
    known = isinstance(holder, Mapping) and path in BY_KEY
    return BY_KEY[path].of(holder) if known else pick_path(holder, path)
