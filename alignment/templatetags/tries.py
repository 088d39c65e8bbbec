"""Template tags of tries in the editor."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def on_page(html: SafeString, url: str) -> SafeString:
    """A sanitised text whose turn links lead to the chat's page."""
    return mark_safe(html.replace('href="#m', f'href="{escape(url)}#m'))  # noqa: S308 - sanitised before
