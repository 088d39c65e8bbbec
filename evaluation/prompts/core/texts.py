"""The fixed texts of the prompts: one Markdown file per text, in a full and a compact edition."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from evaluation.core.types import Size

_FOLDER = Path(__file__).parent.parent / "roles"


@cache
def texts(size: Size) -> Mapping[str, str]:
    """Return every fixed text of an edition by file name."""
    files = sorted((_FOLDER / size).glob("*.md"))
    return {file.stem: file.read_text(encoding="utf-8").strip() for file in files}


def some_texts(size: Size, *names: str) -> tuple[str, ...]:
    """Return the named texts in this order, without those that the edition does not have."""
    return tuple(texts(size)[name] for name in names if name in texts(size))
