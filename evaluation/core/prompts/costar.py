"""Splits a criterion's prompt into its CO-STAR sections."""

import re
from functools import lru_cache

HEADINGS = ("context", "objective", "style", "tone", "audience", "response", "examples")
PREAMBLE = ""

_HEADING = re.compile(r"^#{1,2}[ \t]+(" + "|".join(HEADINGS) + r")[ \t]*:?[ \t]*#*[ \t]*$", re.IGNORECASE)
_CODE_FENCE = re.compile(r"^[ \t]*(?:```|~~~)")
_SLOT = re.compile(r"^[ \t]*\{\{[ \t]*knowledge[ \t]*\}\}[ \t]*$", re.MULTILINE)


def sections(markdown: str) -> dict[str, str]:
    """Return the text under each CO-STAR heading, keys in lower case; text before the first under "".

    A heading given twice is joined. Headings inside code fences, and other headings, are ordinary text.
    Sections without text are left out.

    >>> sections("# Context\\nA shop.\\n# Tone\\nCalm.")
    {'context': 'A shop.', 'tone': 'Calm.'}
    """
    return dict(_sections(markdown))


@lru_cache(maxsize=256)  # a prompt is the same for every chat
def _sections(markdown: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, list[str]] = {}
    current, in_code = PREAMBLE, False
    for line in markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        in_code ^= bool(_CODE_FENCE.match(line))
        heading = None if in_code else _HEADING.match(line)
        if heading:
            current = heading[1].lower()
        else:
            found.setdefault(current, []).append(line)
    texts = {name: "\n".join(lines).strip() for name, lines in found.items()}
    return tuple((name, text) for name, text in texts.items() if text)


def fill_knowledge(text: str, *, knowledge: str) -> tuple[str, bool]:
    """Return `text` with the line `{{knowledge}}` replaced, and whether it had one."""
    filled, count = _SLOT.subn(lambda _: knowledge, text)
    return filled, count > 0
