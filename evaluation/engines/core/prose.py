"""Splits a model's prose by criterion."""

import re
from collections.abc import Sequence

BEFORE = ""

_DECORATION = " \t#*_`-–:."
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_LONGEST_HEADING = 100


def by_criterion(text: str, *, keys: Sequence[str]) -> dict[str, str]:
    """Return the text under each line that holds only a key; text before the first such line is under "".

    Text under an identifier that is not in `keys` is dropped.

    Examples
    --------
    >>> by_criterion("intro\\n**polite**\\nyes", keys=["polite"])
    {'': 'intro', 'polite': 'yes'}
    """
    names = {key.casefold(): key for key in keys}
    sections: dict[str, list[str]] = {}
    current: str | None = BEFORE
    for line in text.split("\n"):
        word = line.strip(_DECORATION).casefold() if len(line) <= _LONGEST_HEADING else ""
        if word in names:
            current = names[word]
        elif _IDENTIFIER.fullmatch(word):
            current = None
        elif current is not None:
            sections.setdefault(current, []).append(line)
    texts = {key: "\n".join(lines).strip() for key, lines in sections.items()}
    return {key: body for key, body in texts.items() if body}


def about(key: str, *, text: str, keys: Sequence[str]) -> str:
    """Return what a text says about one criterion: its section, or everything if it is the only key.

    Without headings and with several keys it is "": no criterion receives another one's text.
    """
    parts = by_criterion(text, keys=keys)
    if len(keys) == 1:
        return "\n\n".join(part for part in (parts.get(BEFORE), parts.get(key)) if part)
    return parts.get(key, "")


def join_sections(parts: dict[str, str]) -> str:
    """Return sections as one text, each under its key."""
    return "\n\n".join(f"{key}\n{body}" if key else body for key, body in parts.items())
