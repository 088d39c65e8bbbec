"""Filters for `alignment/reports/_filters.html`."""

from collections.abc import Sequence
from typing import Any


def select_filter(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> dict[str, Any]:
    """Context of a select; `options` are (value, label)."""
    rows = [{"value": value, "label": text, "selected": value == chosen} for value, text in options]
    return {"name": name, "label": label, "options": rows}
