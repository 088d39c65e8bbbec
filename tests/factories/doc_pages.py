"""Headings of the docs, as links name them."""

import re
from pathlib import Path

from lace_site.manual.core import anchor


def headings(path: Path) -> set[str]:
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    return {anchor(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")}
