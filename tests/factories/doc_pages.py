"""Headings and examples of the docs."""

import re
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from lace_site.manual.core import anchor

DOCS: Path = settings.BASE_DIR / "docs"
FENCE = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$")


def headings(path: Path) -> set[str]:
    """The headings of a page, as links name them."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    return {anchor(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")}


@dataclass(frozen=True)
class Block:
    """A fenced block: the heading above it, its language, its text."""

    heading: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in FENCE.finditer(text):
        above = re.findall(r"(?m)^#+ (.+)$", FENCE.sub("", text[: match.start()]))
        found.append(Block(above[-1] if above else "", match[2], match[3]))
    return found


def the_block(page: str, language: str, heading: str) -> str:
    """The text of the first block in a language below a heading."""
    return next(
        block.text for block in blocks(DOCS / page) if (block.language, block.heading) == (language, heading)
    )
