"""Kinds of data that an import takes, filled by each app."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from common.jsonl import ImportResult

Cell = Literal["text", "answer", "flag", "whole", "number", "json", "time"]
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A field that a column can fill. `also`: other names of such columns, in letters and digits."""

    key: str
    label: str
    cell: Cell = "text"
    also: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class ImportKind:
    """
    One kind of data.

    Parameters
    ----------
    label, unit : what pages call it and its rows, as "Chats" and "chats".
    targets : the fields of a line.
    store : writes the lines of a JSON Lines file, in the transaction of the caller.
    asks : what else the page asks for: "set", "new_set", "rubric_name", "rater", "judge".
    check : reports problems to the watch and writes nothing; without it, a trial of `store` finds them.
    trial : whether a trial of `store`, which is rolled back, follows `check`.
    wide : whether a column may hold the answers to one criterion.
    batches : whether `store` writes in batches of its watch, so that others can write in between.
    derived : models, as "app.model", whose rows the workspace derives from what was created, with the fields
        by which they are still as derived; they go with it when it is undone.
    examples : lines of the template.
    reader : reads the file into lines, from its path and how it is read; its columns are then not asked for.
    """

    key: str
    label: str
    unit: str
    about: str
    targets: tuple[Target, ...]
    store: Callable[[Path, Options], ImportResult]
    asks: frozenset[str] = frozenset()
    check: Callable[[Path, Options], ImportResult] | None = None
    trial: bool = True
    wide: bool = False
    batches: bool = False
    derived: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ()
    reader: Callable[[Path, Mapping[str, str]], Iterator[tuple[int, Any]]] | None = None

    @property
    def has_columns(self) -> bool:
        """Whether the page asks what the columns of a file are."""
        return self.reader is None
