"""Files to download."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse

from common.files import csv_lines, json_line

TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv"}


def table_file(lines: Iterable[Mapping[str, Any]], columns: Sequence[str], *, name: str) -> HttpResponse:
    """Return a CSV download of this name; no cell is a formula."""
    response = HttpResponse(csv_lines(lines, columns), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def lines_file(
    lines: Iterator[Mapping[str, Any]], columns: Sequence[str], *, name: str, kind: str
) -> StreamingHttpResponse:
    """Return a streamed download of this name, without the ending; `kind` is one of TYPES."""
    return StreamingHttpResponse(
        csv_lines(lines, columns) if kind == "csv" else (json_line(line) + "\n" for line in lines),
        content_type=f"{TYPES[kind]}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.{kind}"'},
    )
