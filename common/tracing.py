"""Spans of traces, where the site sends traces; elsewhere a span is nothing and costs nothing.

Attributes are numbers and names of ours: no text of a chat, no address of a page, no message of an error.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

Kind = Literal["server", "consumer", "client"]
Value = str | int
# Begins a span of this kind with these attributes, below the span that the headers name, else the current
# one; what it returns adds attributes, and `name` renames the span.
Add = Callable[..., None]
Begin = Callable[[str, Kind, Mapping[str, Value], Mapping[str, str] | None], AbstractContextManager[Add]]

_begin: list[Begin] = []


def spans_begin(begin: Begin | None) -> None:
    """Let this make all spans from now on; None: there are none."""
    _begin[:] = [begin] if begin else []


@contextmanager
def span(
    name: str, kind: Kind, *, headers: Mapping[str, str] | None = None, **attributes: Value
) -> Iterator[Add]:
    """Make what happens inside a span. Names of attributes are written with `_` for `.`."""
    if not _begin:
        yield _nothing
        return
    with _begin[0](name, kind, attributes, headers) as add:
        yield add


def _nothing(**_: Value) -> None:
    """Add attributes to no span."""
