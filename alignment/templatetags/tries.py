"""Template tags of the prompt editor: message authors, quotes and tries."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from evaluation.engines.core.quotes import Quote
from labeling.templatetags.labels import ROLES

register = template.Library()

QUOTE_CHECKS = {
    "verified": "found in the turn",
    "close": "similar words in the turn",
    "short": "too short to check",
    "missing": "not in the turn",
}


@register.filter
def on_page(html: SafeString, url: str) -> SafeString:
    """Point the turn links of a sanitised text to the chat's own page."""
    return mark_safe(html.replace('href="#m', f'href="{escape(url)}#m'))  # noqa: S308 - sanitised before


@register.filter
def speaker(role: str) -> str:
    """Return who wrote a message: Customer, Bot, or the role itself."""
    return ROLES[role][1] if role in ROLES else role.capitalize()


@register.filter
def quote_check(quote: Quote) -> str:
    """Return whether the words of a quote are in the turn that it names."""
    return QUOTE_CHECKS[quote.match]
