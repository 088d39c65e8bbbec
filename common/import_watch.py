"""What an import tells while it runs: progress, problems, the rows that it writes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from common.problems import ImportProblem


class ImportWatch:
    """What an import tells while it runs; this one listens to nothing and stops at the first problem."""

    # Whether problems are collected: whatever takes long for one problem is then left out of its message.
    tolerant = False
    # Whether the import writes in batches of its own, which whoever watches takes back if it fails.
    in_batches = False

    def batch(self) -> AbstractContextManager[None]:
        """Write what belongs together: a transaction, where the import writes in batches."""
        return nullcontext()

    def own(self, model: type[Any]) -> AbstractSet[int]:
        """Return the ids of the rows that this import had created before it was interrupted."""
        return frozenset()

    def advance(self, done: int) -> None:
        """Note that so many further lines are done; may raise to stop the import."""

    def refuse(self, problem: ImportProblem) -> None:
        """Take a problem with a line: raise it, or return to leave the line out."""
        raise problem

    def created(self, rows: Iterable[Any], fields: Sequence[str] = ()) -> None:
        """Note new rows. `fields`: a change of one of these means that somebody has changed the row."""

    def updated(self, row: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Note that fields of a row changed, with what they held before and hold now."""


_watch: ContextVar[ImportWatch | None] = ContextVar("import_watch", default=None)
_SILENT = ImportWatch()


def import_watch() -> ImportWatch:
    """Return the watch of the import that runs here."""
    return _watch.get() or _SILENT


@contextmanager
def watched(watch: ImportWatch) -> Iterator[None]:
    """Let the imports in here tell this watch."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)
