"""Every verb that the product writes into the audit log, read from the calls in its source."""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

from django.conf import settings

WRITERS = ("audit", "audit_all")
# Writers whose verb follows from what they import.
IMPORTERS = ("audit_import", "audit_command")
# Names of verbs that a call takes from somewhere else in its file, by file and name.
ELSEWHERE = {
    ("labeling/people/services/second_factor.py", "verb"): ("added", "removed", "renewed"),
}
OWN = "labeling/people/services/audit.py"


class UnreadableVerb(Exception):
    """A verb that this cannot read: write it plainly, or name it in ELSEWHERE."""


@cache
def product_verbs() -> frozenset[str]:
    """Return them all."""
    found: set[str] = set()
    for app in ("labeling", "evaluation", "alignment", "lace_site"):
        for path in (settings.BASE_DIR / app).rglob("*.py"):
            text = path.read_text("utf-8")
            own = path == settings.BASE_DIR / OWN or "migrations" in path.parts
            if not own and any(f"{name}(" in text for name in (*WRITERS, *IMPORTERS)):
                found |= set(_file(path).verbs())
    return frozenset(found)


@cache
def _file(path: Path) -> "_File":
    return _File(path, ast.parse(path.read_text("utf-8")))


class _File:
    def __init__(self, path: Path, module: ast.Module) -> None:
        self.name = str(path.relative_to(settings.BASE_DIR))
        self.module = module
        self.values: dict[str, ast.expr] = {}
        self.imported: dict[str, Path] = {}
        for node in ast.walk(module):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.values[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.values[name] = value
                case ast.ImportFrom(module=str(source)):
                    file = settings.BASE_DIR / f"{source.replace('.', '/')}.py"
                    self.imported |= {one.name: file for one in node.names if file.exists()}

    def verbs(self) -> Iterator[str]:
        """Yield the verbs of all calls."""
        for function, call in self._calls(self.module, None):
            name = getattr(call.func, "id", "")
            words = {word.arg: word.value for word in call.keywords}
            if name in WRITERS:
                yield from self._texts(words["verb"], function)
            elif name in IMPORTERS:
                yield from (f"{what} imported" for what in self._texts(words["what"], function))

    def _calls(
        self, node: ast.AST, function: ast.FunctionDef | None
    ) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield function, child
            yield from self._calls(child, child if isinstance(child, ast.FunctionDef) else function)

    def _texts(self, node: ast.expr, function: ast.FunctionDef | None) -> set[str]:
        """Return every text that an expression can be."""
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.IfExp():
                return self._texts(node.body, function) | self._texts(node.orelse, function)
            case ast.JoinedStr():
                parts = [sorted(self._texts(part, function)) for part in node.values]
                return {"".join(part) for part in product(*parts)}
            case ast.FormattedValue():
                return self._texts(node.value, function)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._texts(ast.copy_location(ast.Name(id=name), node), function)
            case ast.Dict():
                return {text for value in node.values for text in self._texts(value, function)}
            case ast.Name(id=name):
                return self._named(name, function)
        raise UnreadableVerb(f"{self.name}:{node.lineno} {ast.unparse(node)}")

    def _named(self, name: str, function: ast.FunctionDef | None) -> set[str]:
        """Return the texts of a name: said to be so, assigned, or given in calls of the function."""
        if known := ELSEWHERE.get((self.name, name)):
            return set(known)
        given = list(self._given(name, function)) if function else []
        if given:
            return {text for value, caller in given for text in self._texts(value, caller)}
        if name in self.values:
            return self._texts(self.values[name], function)
        if name in self.imported:
            return _file(self.imported[name])._named(name, None)
        raise UnreadableVerb(f"{self.name}: {name}")

    def _given(
        self, name: str, function: ast.FunctionDef
    ) -> Iterator[tuple[ast.expr, ast.FunctionDef | None]]:
        places = [argument.arg for argument in function.args.args]
        names = {*places, *(argument.arg for argument in function.args.kwonlyargs)}
        if name not in names:
            return
        for caller, call in self._calls(self.module, None):
            if getattr(call.func, "id", "") != function.name:
                continue
            yield from ((word.value, caller) for word in call.keywords if word.arg == name)
            if name in places and places.index(name) < len(call.args):
                yield call.args[places.index(name)], caller
