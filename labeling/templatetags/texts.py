"""Template tags for text versions and the audit log."""

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
    """Render a word diff: removed text struck out, added text underlined, also for screen readers."""
    shown = [(format_html(_PASSAGES[part.kind], SafeString(safe_text.visible(part.text))),) for part in parts]
    return format_html_join("", "{}", shown)


@register.filter
def audit_detail(value: Any) -> str:
    """Format a detail of an audit event."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if set(value) == {"old", "new"}:
            return f"{audit_detail(value['old'])} → {audit_detail(value['new'])}"
        return ", ".join(f"{name}: {audit_detail(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(audit_detail(part) for part in value)
    return "–" if value is None else str(value)
