"""Files to download."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse

from common.files import csv_lines


def table_file(lines: Iterable[Mapping[str, Any]], columns: Sequence[str], *, name: str) -> HttpResponse:
    """Return a CSV download of this name; no cell is a formula."""
    response = HttpResponse(csv_lines(lines, columns), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
