"""Template tags of verdicts and rationales. Loaded on every page."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from common import safe_text
from common.templatetags.display import pick, readable
from evaluation.core.types import Chat, Message
from evaluation.engines.core.quotes import mark_quotes
from labeling.templatetags.labels import ANSWERS, answer_key

register = template.Library()

VERDICT_STATES = {
    "unparsed": "Unparsed",
    "refused": "Refused",
    "cut_off": "Cut off",
    "too_long": "Too long",
    "failed": "Failed",
    "none": "No verdict",
}


@register.simple_tag
def judge_chip(value: Any, state: Any = "read") -> SafeString:
    """Show the judge's verdict, or why there is none."""
    if state and state != "read":
        return format_html('<span class="tag">{}</span>', VERDICT_STATES.get(str(state), readable(state)))
    answer = answer_key(value)
    if answer == "none":
        return format_html('<span class="tag">{}</span>', VERDICT_STATES["none"])
    return format_html('<span class="j">{}</span>', ANSWERS.get(answer, answer))


@register.simple_tag
def verdict_chip(verdict: Any) -> SafeString:
    """Show a verdict {state, value}; None = no verdict."""
    if verdict is None or verdict == "":
        return judge_chip(None, "none")
    return judge_chip(pick(verdict, "value"), pick(verdict, "state") or "read")


@register.filter
def turn_links(text: Any, messages: Iterable[Any] | None = None) -> SafeString:
    """Render a rationale with citations as links to #m7; with the chat's messages, check its quotes."""
    if not messages:
        return mark_safe(safe_text.rationale(str(text or "")))  # noqa: S308 - sanitised there
    chat = _chat_of(messages)
    # What was found needs no chip: the link says where.
    marked = mark_quotes(text=str(text or ""), chat=chat).replace(" [verified]", "")
    turns = {message.n for message in chat.messages}
    return mark_safe(safe_text.rationale(marked, turns=turns, marked=True))  # noqa: S308 - sanitised there


def _chat_of(messages: Iterable[Any]) -> Chat:
    read = (
        Message(int(pick(each, "n")), pick(each, "role") or "user", str(pick(each, "content") or ""))
        for each in messages
    )
    return Chat("", tuple(read))


@register.filter
def marked_quotes(text: Any) -> SafeString:
    """Render a brief with the results of its quote checks as chips."""
    return mark_safe(safe_text.rationale(str(text or ""), marked=True))  # noqa: S308 - sanitised there


@register.filter
def cited_turns(steps: Sequence[Any] | None) -> set[int]:
    """Return the turns that the last, deciding step cites."""
    return safe_text.cited_turns(str(pick(steps[-1], "text") or "")) if steps else set()
