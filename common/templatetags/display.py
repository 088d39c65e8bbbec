"""Template tags of all pages: figures, chips, plots, safe display of untrusted text."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.contrib.messages import get_messages
from django.template import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeData, SafeString, mark_safe

from common import plots, safe_text

register = template.Library()

ANSWERS = {
    "true": "True",
    "false": "False",
    "na": "Not applicable",
    "not_applicable": "Not applicable",
    "none": "Unlabelled",
    "unlabelled": "Unlabelled",
    "unresolved": "Unresolved",
}
VERDICT_STATES = {
    "unparsed": "Unparsed",
    "refused": "Refused",
    "cut_off": "Cut off",
    "too_long": "Too long",
    "failed": "Failed",
    "none": "No verdict",
}
STATUSES = {  # css class and words; criteria, prompts, runs, jobs, tests use the same chip
    "aligned": ("aligned", "Aligned"),
    "not_aligned": ("not", "Not aligned"),
    "not_enough_labels": ("few", "Not enough labels"),
    "directional": ("dir", "Directional only"),
    "running": ("on", "Running"),
    "paused": ("few", "Paused"),
    "cancelled": ("dir", "Cancelled"),
    "done": ("on", "Done"),
    "done_with_failures": ("not", "Done with failures"),
    "pass": ("aligned", "Pass"),
    "fail": ("not", "Fail"),
    "inconclusive": ("few", "Inconclusive"),
    "confirming": ("on", "Confirming"),
    "waiting": ("few", "Waiting"),
    "open": ("on", "Open"),
    "closed": ("dir", "Closed"),
    "draft": ("few", "Draft"),
    "candidate": ("on", "Candidate"),
    "champion": ("aligned", "Champion"),
    "retired": ("dir", "Retired"),
}
ROLES = {
    "user": ("cust", "Customer"),
    "assistant": ("bot", "Bot"),
    "tool": ("tool", "Tool"),
    "system": ("tool", "System"),
}
STATISTICS = {
    "balanced_accuracy": "Balanced accuracy",
    "tpr": "TPR (raters answered True)",
    "tnr": "TNR (raters answered False)",
    "gwet_ac1": "AC1",
    "kappa": "Cohen κ",
    "accuracy": "Accuracy",
    "precision": "Precision",
    "f1": "F1",
    "mcc": "MCC",
    "pabak": "PABAK",
}


def pick(holder: Any, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None where it is missing."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def pick_path(holder: Any, path: str) -> Any:
    """Follow a dotted path, e.g. `human.ceiling`; None where a step is missing."""
    for name in path.split("."):
        holder = pick(holder, name)
    return holder


def estimate(statistic: Any) -> plots.Estimate:
    """Convert {"value", "low", "high"}, a number or None to an estimate."""
    if statistic is None or isinstance(statistic, int | float):
        return plots.Estimate(statistic)
    return plots.Estimate(pick(statistic, "value"), pick(statistic, "low"), pick(statistic, "high"))


# ---------- figures ----------


@register.filter
def number(value: float | str | None, reason: str = "") -> SafeString:
    """Format with two decimals and a true minus sign; an undefined value is a dash titled with the reason."""
    if value is None or isinstance(value, str):  # NB: templates pass "" for an unknown name
        return format_html('<span class="dim" title="{}">–</span>', reason or "Undefined")
    return mark_safe(plots.figure(value))  # noqa: S308 - digits only


@register.filter
def interval(statistic: Any) -> str:
    """Format the 95% interval; '' where there is none. “to” replaces the dash beside a minus sign."""
    bounds = estimate(statistic or None)
    if bounds.low is None or bounds.high is None:
        return ""
    low, high = number(bounds.low), number(bounds.high)
    return f"{low} to {high}" if "−" in low else f"{low}–{high}"


@register.filter
def percent(value: float | str | None) -> SafeString:
    """Format a share as whole percent."""
    if value is None or isinstance(value, str):
        return number(None)
    return mark_safe(f"{100 * value:.0f}%")  # noqa: S308 - digits only


@register.filter
def count(value: int | str | None, style: str = "") -> SafeString:
    """Format a count with thousands separators; None is a dash; `quiet` dims a zero."""
    if value is None or isinstance(value, str):
        return number(None, "Not counted")
    if style == "quiet" and not value:
        return mark_safe('<span class="dim">0</span>')
    return mark_safe(f"{value:,}")  # noqa: S308 - digits only


@register.filter
def readable(key: Any) -> str:
    """Make a key readable: `answer_correctness` → Answer correctness."""
    text = str(key).replace("_", " ")
    return text[:1].upper() + text[1:]


@register.filter
def label_of(thing: Any) -> str:
    """Return the name of a dimension, tier or criterion, else its readable key."""
    return str(pick(thing, "name") or readable(pick(thing, "key") or pick(thing, "tier") or ""))


@register.filter
def moment(value: datetime | str | None, style: str = "%-d %b %Y, %H:%M") -> str:
    """Format a time or its ISO text; other text stays unchanged."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return str(value)
    if value and timezone.is_aware(value):
        value = timezone.localtime(value)
    return value.strftime(style) if value else ""


@register.simple_tag
def stat(holder: Any, path: str) -> SafeString:
    """Show a statistic; its title is the interval, or why value or interval are missing."""
    statistic = pick_path(holder, path)
    value = estimate(statistic)
    reason = pick(pick(holder, "undefined"), path) or ""
    if value.value is None:
        return number(None, reason or "Not computed here")
    title = pick(statistic, "flag") or reason
    if value.low is not None:
        title = title or f"95% interval {interval(statistic)}"
    if not title:
        return number(value.value)
    return format_html('<span title="{}">{}</span>', title, number(value.value))


@register.simple_tag
def left_out(key: str, chats: Any) -> SafeString:
    """Link the number of excluded chats of a row to the table below; a zero is dimmed."""
    if not chats:
        return format_html('<span class="dim">{}</span>', 0)
    return format_html('<a href="#left-{}">{}</a>', key, count(chats))


# ---------- chips ----------


def _answer(value: Any) -> str:
    return "na" if value is None else str(value).lower() or "none"


@register.filter("answer")
def answer_in_words(value: Any) -> str:
    """Format an answer: True, False or Not applicable."""
    return ANSWERS.get(_answer(value), str(value))


@register.simple_tag
def between(forloop: Mapping[str, Any]) -> str:
    """Return the separator after an item of a loop, for “a, b and c”."""
    return " and " if forloop["revcounter"] == 2 else "" if forloop["last"] else ", "


@register.simple_tag
def human_chip(value: Any) -> SafeString:
    """Show the raters' answer: True, False, None (not applicable), or a consensus state."""
    answer = _answer(value)
    if answer in {"unresolved", "none", "unlabelled"}:
        return format_html('<span class="tag">{}</span>', ANSWERS[answer])
    return format_html('<span class="p">{}</span>', ANSWERS.get(answer, answer))


@register.simple_tag
def judge_chip(value: Any, state: Any = "read") -> SafeString:
    """Show the judge's verdict, or why there is none."""
    if state and state != "read":
        return format_html('<span class="tag">{}</span>', VERDICT_STATES.get(str(state), readable(state)))
    answer = _answer(value)
    if answer == "none":
        return format_html('<span class="tag">{}</span>', VERDICT_STATES["none"])
    return format_html('<span class="j">{}</span>', ANSWERS.get(answer, answer))


@register.simple_tag
def verdict_chip(verdict: Any) -> SafeString:
    """Show a verdict {state, value}; None = no verdict."""
    if verdict is None or verdict == "":
        return judge_chip(None, "none")
    return judge_chip(pick(verdict, "value"), pick(verdict, "state") or "read")


@register.simple_tag
def outcome(value: Any, passes_when: bool) -> SafeString:
    """Show what an answer means for the chatbot: Pass or Fail."""
    answer = _answer(value)
    if answer not in {"true", "false"}:
        return format_html('<span class="dim" title="{}">–</span>', ANSWERS.get(answer, "No outcome"))
    passed = (answer == "true") == passes_when
    return mark_safe('<span class="ok">Pass</span>' if passed else '<span class="ko">Fail</span>')  # noqa: S308


@register.simple_tag
def status_chip(status: Any, tier: str = "") -> SafeString:
    """Show the status of a criterion or a run; a subjective criterion is directional only."""
    if not status:
        return SafeString("")
    css_class, words = STATUSES.get(
        "directional" if tier == "subjective" else str(status), ("few", readable(status))
    )
    return format_html('<span class="status {}">{}</span>', css_class, words)


# ---------- untrusted text ----------


@register.filter
def visible(text: Any) -> SafeString:
    """Escape plain text and show hidden characters."""
    return mark_safe(safe_text.visible(str(text or "")))  # noqa: S308 - escaped there


@register.filter
def markdown(text: Any) -> SafeString:
    """Render Markdown as sanitised HTML."""
    return mark_safe(safe_text.markdown(str(text or "")))  # noqa: S308 - sanitised there


@register.filter
def turn_links(text: Any, messages: Iterable[Any] | None = None) -> SafeString:
    """Render a rationale with citations as links to #m7; with the chat's messages, check its quotes."""
    turns = None
    if messages:
        turns = {int(pick(message, "n")): str(pick(message, "content") or "") for message in messages}
    return mark_safe(safe_text.rationale(str(text or ""), turns))  # noqa: S308 - sanitised there


@register.filter
def marked_quotes(text: Any) -> SafeString:
    """Render a brief with the results of its quote checks as chips."""
    return mark_safe(safe_text.marked_rationale(str(text or "")))  # noqa: S308 - sanitised there


@register.filter
def cited_turns(steps: Sequence[Any] | None) -> set[int]:
    """Return the turns that the last, deciding step cites."""
    return safe_text.cited_turns(str(pick(steps[-1], "text") or "")) if steps else set()


@register.filter
def picked_turns(labels: Iterable[Any] | None) -> set[int]:
    """Return the turns that any rater marked as evidence."""
    return {int(turn) for label in labels or () for turn in pick(label, "turns") or ()}


# ---------- plots and fragments ----------


JUDGE_LANES = (("TPR", "tpr"), ("TNR", "tnr"), ("Balanced", "balanced_accuracy"))
PEOPLE_LANES = (
    ("Agree", "human.percent_agreement"),
    ("AC1", "human.gwet_ac1"),
    ("Alpha", "human.krippendorff_alpha"),
)


@register.inclusion_tag("common/_lanes.html")
def lanes(criterion: Any, judged: Any = True) -> dict[str, Any]:
    """Plot a report row: TPR, TNR and balanced accuracy; without a judge, agreement between raters."""
    named = JUDGE_LANES if judged else PEOPLE_LANES
    people = estimate(pick_path(criterion, "human.ceiling")) if judged else plots.Estimate(None)
    ceiling = {"ceiling": people.value, "ceiling_low": people.low, "ceiling_high": people.high}
    rows = [
        plots.Lane(
            name,
            estimate(pick_path(criterion, path)),
            who="judge" if judged else "people",
            big=i == len(named),
            **(ceiling if i == len(named) else {}),
        )
        for i, (name, path) in enumerate(named, start=1)
    ]
    figures = [(lane, stat(criterion, path)) for lane, (_, path) in zip(rows, named, strict=True)]
    return {"figures": figures, "plot": plots.plot(rows, goal=bool(judged))}


@register.inclusion_tag("common/_plot.html")
def interval_plot(
    holder: Any, name: str, who: plots.Who = "judge", goal: bool = False, ceiling: float | None = None
) -> dict[str, Any]:
    """Plot one statistic as a dot with its interval and the human ceiling as a tick."""
    lane = plots.Lane(
        STATISTICS.get(name, readable(name)),
        estimate(pick(holder, name)),
        who,
        big=name == "balanced_accuracy",
        ceiling=ceiling,
    )
    return {"plot": plots.plot([lane], goal=goal)}


@register.inclusion_tag("common/_progress.html")
def progress(done: int, total: int, failed: int = 0, mine: bool = False) -> dict[str, Any]:
    """Draw a progress bar: a rater's own work in blue, a run in ink with failures in red."""
    whole = max(total, 1)
    return {
        "done": done,
        "total": total,
        "failed": failed,
        "mine": mine,
        "done_width": f"{100 * min(done, whole) / whole:.2f}%",
        "failed_width": f"{100 * min(failed, whole) / whole:.2f}%",
    }


@register.inclusion_tag("common/_turn.html")
def turn(message: Any, cited: Iterable[int] = (), picked: Iterable[int] = ()) -> dict[str, Any]:
    """One message of a transcript; tool and system turns are folded to a line."""
    css_class, role = ROLES.get(
        str(pick(message, "role")), ("tool", readable(pick(message, "role") or "unknown"))
    )
    content, n = str(pick(message, "content") or ""), pick(message, "n")
    return {
        "n": n,
        "content": content,
        "blank": not content.strip(),
        "summary": " ".join(content[:200].split()),
        "created_at": pick(message, "created_at"),
        "css_class": css_class,
        "role": role,
        "folded": css_class == "tool",
        "cited": n in (cited or ()),
        "picked": n in (picked or ()),
    }


@register.inclusion_tag("common/_flashes.html", takes_context=True)
def flashes(context: Context) -> dict[str, Any]:
    """What the last action left to say; a tag, because a chat's pages call their transcript `messages`."""
    request = context.get("request")
    shown = [one.message for one in get_messages(request)] if request else []
    return {"flashes": [text if isinstance(text, SafeData) else visible(text) for text in shown]}


@register.simple_tag
def estimates(holder: Any, paths: str) -> SafeString:
    """Table cells of several statistics: the value, its interval below."""
    cells = ((stat(holder, path), interval(pick_path(holder, path))) for path in paths.split())
    return format_html_join("", '<td class="num">{}<small>{}</small></td>', cells)


@register.simple_tag
def learn_more(page: str, heading: str = "", *, text: str = "Learn more") -> SafeString:
    """A link to a chapter of the docs: the page's path without ending, and the anchor of a heading."""
    address = static(f"docs/{page}.html") + (f"#{heading}" if heading else "")
    return format_html('<a class="more" href="{}">{}</a>', address, text)
