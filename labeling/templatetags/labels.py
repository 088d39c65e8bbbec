"""Template tags of labelling: answers, statuses, turns of a chat. Loaded on every page."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.templatetags.display import pick, readable

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
STATUSES = {  # css class and words; criteria, prompts, runs, jobs, tests use the same chip
    "aligned": ("aligned", "Aligned"),
    "not_aligned": ("not", "Not aligned"),
    "not_enough_labels": ("few", "Not enough labels"),
    "raters_disagree": ("apart", "Raters disagree"),
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
    "tested": ("on", "Tested"),
    "released": ("aligned", "Released"),
    "retired": ("dir", "Retired"),
    # sample plans and their nights
    "active": ("on", "Active"),
    "empty": ("dir", "No chats"),
    "refused": ("not", "Not started"),
}
ROLES = {
    "user": ("cust", "Customer"),
    "assistant": ("bot", "Bot"),
    "tool": ("tool", "Tool"),
    "system": ("tool", "System"),
}


@register.filter
def label_of(thing: Any) -> str:
    """Return the name of a dimension, tier or criterion, else its readable key."""
    return str(pick(thing, "name") or readable(pick(thing, "key") or pick(thing, "tier") or ""))


def answer_key(value: Any) -> str:
    return "na" if value is None else str(value).lower() or "none"


@register.filter("answer")
def answer_in_words(value: Any) -> str:
    """Format an answer: True, False or Not applicable."""
    return ANSWERS.get(answer_key(value), str(value))


@register.simple_tag
def human_chip(value: Any) -> SafeString:
    """Show the raters' answer: True, False, None (not applicable), or a consensus state."""
    answer = answer_key(value)
    if answer in {"unresolved", "none", "unlabelled"}:
        return format_html('<span class="tag">{}</span>', ANSWERS[answer])
    return format_html('<span class="p">{}</span>', ANSWERS.get(answer, answer))


@register.simple_tag
def status_chip(status: Any, tier: str = "", words: str = "") -> SafeString:
    """Show the status of a criterion or a run, or these words; a subjective criterion is directional only."""
    if not status:
        return SafeString("")
    css_class, usual = STATUSES.get(
        "directional" if tier == "subjective" else str(status), ("few", readable(status))
    )
    return format_html('<span class="status {}">{}</span>', css_class, words or usual)


@register.filter
def picked_turns(labels: Iterable[Any] | None) -> set[int]:
    """Return the turns that any rater marked as evidence."""
    return {int(turn) for label in labels or () for turn in pick(label, "turns") or ()}


@register.inclusion_tag("labeling/chats/_turn.html")
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
