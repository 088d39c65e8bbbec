"""Template tags of suggested prompt revisions."""

from collections.abc import Mapping

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import get_text_list

from alignment.models.suggestions import Suggestion
from common import safe_text

register = template.Library()


@register.filter
def chat_links(text: str, links: Mapping[int, str]) -> SafeString:
    """A model's text as sanitised HTML, with links on “chat 3” to the chat of that number."""
    return mark_safe(safe_text.numbered_chats(text, links))  # noqa: S308 - sanitised there


@register.filter
def fate(row: Suggestion) -> str:
    """Status of a suggestion, in a few words. Contains usernames: escape it."""
    if row.state != Suggestion.State.DONE:
        return row.get_state_display()
    users = dict.fromkeys(str(use.by) for use in row.uses.all() if use.undone_at is None)
    if users:
        return f"Used by {get_text_list(list(users), 'and')}"
    return "Dismissed" if row.dismissed_at else "Not used"
