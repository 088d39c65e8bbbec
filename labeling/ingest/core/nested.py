"""Objects deep inside large JSON documents, with one of them in memory at a time."""

import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.guarded_json import guarded_loads
from common.jsonl import Fields, open_input
from common.problems import FieldProblem, shown
from labeling.transfer.core.records import UnreadableRest, Window

Route = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An object in a document: the names that lead to it, its path, its first line and its content."""

    route: Route
    path: str
    line: int
    value: dict[str, Any] | FieldProblem


def nested_objects(
    path: Path, *, routes: Collection[Route], beside: Collection[Route] = ()
) -> Iterator[Item]:
    """
    Yield objects of the documents of a UTF-8 file in the order of the file.

    The file holds one document, one a line, or a list of them; each may be larger than the memory. An
    object of a route has at most 16 MB.

    Parameters
    ----------
    routes : names of nested lists, outermost first, whose objects are wanted.
    beside : names that lead to single objects on the way, such as ("resourceSpans", "resource").

    A wrong object is its problem. What is no JSON ends the file: the last item then holds an UnreadableRest.

    Raises ImportProblem where the file cannot be opened.
    """
    with open_input(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        walk = _Walk(Window(file), frozenset(routes), frozenset(beside))
        try:
            yield from walk.documents()
        except UnicodeDecodeError:
            yield Item((), "", walk.window.line, UnreadableRest("", "is not UTF-8"))
        except FieldProblem as problem:
            rest = UnreadableRest(problem.field or walk.place, problem.message)
            yield Item((), "", walk.window.line, rest)


class _Walk:
    """The way through the brackets of a file."""

    def __init__(self, window: Window, routes: frozenset[Route], beside: frozenset[Route]) -> None:
        self.window, self.routes, self.beside = window, routes, beside
        # What is opened on the way to a wanted object.
        self.opened = {route[:length] for route in routes for length in range(1, len(route) + 1)}
        self.place = ""

    def documents(self) -> Iterator[Item]:
        """Yield the items of all documents."""
        if self.window.take("["):
            yield from self._list((), "")
        while not self.window.at_end():
            yield from self._object((), "")

    def _object(self, route: Route, path: str) -> Iterator[Item]:
        self.place = path
        self._expect("{", "must be an object")
        first = True
        while not self.window.take("}"):
            if not first:
                self._expect(",", "must be followed by a comma or a closing bracket")
            first = False
            key = guarded_loads(self.window.value())
            self._expect(":", "must be followed by a colon")
            if not isinstance(key, str):
                raise FieldProblem(path, f"a name must be text, not {shown(key)}")
            here, place = (*route, key), f"{path}.{key}" if path else key
            if here in self.opened and self.window.take("["):
                yield from self._list(here, place)
            elif here in self.beside:
                yield self._item(here, place, self.window.line, self.window.value())
            else:
                self.window.value()
            self.place = path

    def _list(self, route: Route, path: str) -> Iterator[Item]:
        number = 0
        while not self.window.take("]"):
            if number:
                self._expect(",", "must be followed by a comma or the end of the list")
            place = f"{path}[{number}]" if path else ""
            self.place = place
            if route in self.routes:
                self.window.at_end()  # the line is that of the bracket, not of the blanks before it
                yield self._item(route, place, self.window.line, self.window.object())
            else:
                yield from self._object(route, place)
            number += 1

    def _item(self, route: Route, path: str, line: int, text: str) -> Item:
        try:
            return Item(route, path, line, Fields(guarded_loads(text)).data)
        except FieldProblem as problem:
            return Item(route, path, line, below(path, problem))

    def _expect(self, mark: str, message: str) -> None:
        if not self.window.take(mark):
            raise FieldProblem(self.place, message)


def below(path: str, problem: FieldProblem) -> FieldProblem:
    """
    Return a problem with its field's path from the root.

    Examples
    --------
    >>> print(below("spans[2]", FieldProblem("name", "is missing")))
    spans[2].name: is missing
    """
    return FieldProblem(
        f"{path}.{problem.field}" if path and problem.field else path or problem.field, problem.message
    )
