"""Template tags of texts in versions, and of the audit log."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from common import safe_text
from common.diff import Part

register = template.Library()

_PASSAGES = {
    "same": "{}",
    "removed": '<del><span class="vh"> [removed: </span>{}<span class="vh">] </span></del>',
    "added": '<ins><span class="vh"> [added: </span>{}<span class="vh">] </span></ins>',
}


@register.simple_tag
def passages(parts: Iterable[Part]) -> SafeString:
    """A word diff: what went struck out, what came underlined, both said to screen readers too."""
    shown = [(format_html(_PASSAGES[part.kind], SafeString(safe_text.visible(part.text))),) for part in parts]
    return format_html_join("", "{}", shown)


@register.filter
def told(value: Any) -> str:
    """A detail of an audit event in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if set(value) == {"old", "new"}:
            return f"{told(value['old'])} → {told(value['new'])}"
        return ", ".join(f"{name}: {told(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(told(part) for part in value)
    return "–" if value is None else str(value)
