"""The generated reference: options of all commands, settings with their defaults, operations of the API.

`python -m docs_tools.reference` writes docs/reference/command-options.md and api-operations.md, and in
settings.md the columns of kind and default; what a setting means is written there by hand.
"""

import argparse
import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs/reference"
APPS = ("labeling", "evaluation", "alignment", "lace_site")
MADE = "<!-- Made by `python -m docs_tools.reference`: change the code, not this page. -->"


def main() -> None:
    """Write the pages."""
    # What a developer has set must not become a documented default.
    for name in ("PORT", *setting_facts()):
        if name not in ("LACE_DATA_DIR", "DATABASE_URL", "LACE_BROKER_DIR"):
            os.environ.pop(name, None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    django.setup()
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """Return the pages as they should be, by their files."""
    settings = REFERENCE / "settings.md"
    return {
        REFERENCE / "command-options.md": commands_page(),
        REFERENCE / "api-operations.md": api_page(),
        settings: settings_page(settings.read_text("utf-8"), setting_facts()),
    }


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; a bar in a cell does not end it."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# ---------- commands ----------

# Options of every Django command, which `--help` lists, too.
COMMON = {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"}
COMMON |= {"skip_checks", "json"}


def commands_page() -> str:
    """Return the page with every option of every command of the workbench."""
    from django.core.management import get_commands, load_command_class

    parts = [
        "# Command options\n",
        MADE + "\n",
        "The same as `manage.py COMMAND --help`. Every command also takes `--json`. [Commands](commands.md)\n"
        "has exit codes, answers and what to know.\n",
    ]
    for name, app in sorted(get_commands().items()):
        if app in APPS and name != "migrate":
            command = load_command_class(str(app), name)
            parser = command.create_parser("manage.py", name)
            parts.append(_command(name, command.help, parser))
    return "\n".join(parts)


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> str:
    actions = [one for one in parser._actions if one.dest not in COMMON]
    text = f"## {name}\n\n{_sentence(about)}\n"
    if not actions:
        return text
    rows = [(_spelling(one), _default(one), _code(one.help or "")) for one in actions]
    return f"{text}\n{table(('option', 'default', 'meaning'), rows)}"


def _code(text: str) -> str:
    """Set options, variables and files in a help text as code."""
    return re.sub(r"(?<![\w`])(--[a-z-]+|[A-Z]+_[A-Z_]+|KEY(?:\.\w+)+)", r"`\1`", text)


def _sentence(text: str) -> str:
    text = _code(" ".join(text.split()))
    return text if text.endswith(".") else f"{text}."


def _spelling(action: argparse.Action) -> str:
    name = ", ".join(action.option_strings)
    value = ""
    if action.nargs != 0:
        value = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
        value = value or str(action.metavar or ("N" if action.type in (int, float) else action.dest.upper()))
    if not name:
        return f"`{'[' if action.nargs == '?' else ''}{value}{']' if action.nargs == '?' else ''}`"
    return f"`{name} {value}`" if value else f"`{name}`"


def _default(action: argparse.Action) -> str:
    if action.required:
        return "required"
    if action.default in (None, "", False, []):
        return ""
    return f"`{action.default}`"


# ---------- settings ----------

READERS = ("lace_site/environment.py", "lace_site/settings.py", "lace_site/watch/tracing.py")
KINDS = {
    "count": "number",
    "positive": "number",
    "positive_or_none": "number",
    "switch": "switch",
    "secret": "secret",
    "networks": "list",
    "domains": "list",
    "fernet_keys": "list of keys",
    "one_of": "choice",
    "env.str": "text",
    "env.list": "list",
    "env.db_url": "URL",
    "env.email_url": "URL",
    "env.int": "number",
    "os.environ.get": "text",
}
# What the code says in several steps.
KINDS_BY_NAME = {
    **dict.fromkeys(("LOG_LEVEL", "LOG_FORMAT"), "choice"),
    **dict.fromkeys(("SECRET_KEY", "OPENAI_API_KEY", "LACE_SSO_CLIENT_SECRET"), "secret"),
    **dict.fromkeys(("LACE_DATA_DIR", "LACE_CERTIFICATE_KEY", "LACE_ARCHIVE_DIR", "LACE_BROKER_DIR"), "path"),
    **dict.fromkeys(("LACE_ALIVE_FILE", "LACE_PRICES"), "path"),
    "TIME_ZONE": "time zone",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """What the code says about a setting; `default` is None where it is not one plain value."""

    kind: str
    default: str | None


def setting_facts() -> dict[str, Fact]:
    """Return the variables that the settings read from the environment, in the order of the code."""
    found: dict[str, Fact] = {}
    # A new way to read a variable is a function of the first reader.
    functions = ast.parse((ROOT / READERS[0]).read_text("utf-8")).body
    readers = {one.name for one in functions if isinstance(one, ast.FunctionDef)} | set(KINDS)
    for name in READERS:
        tree = ast.parse((ROOT / name).read_text("utf-8"))
        constants = dict(_constants(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in readers and node.args:
                first = node.args[0]
                variable = constants.get(ast.unparse(first)) or getattr(first, "value", None)
                if isinstance(variable, str) and re.fullmatch("[A-Z][A-Z0-9_]+", variable):
                    known = found.get(variable)
                    if known is None or known.default is None:
                        kind = KINDS_BY_NAME.get(variable, KINDS.get(ast.unparse(node.func), "text"))
                        found[variable] = Fact(kind, _literal(node))
    found.pop("OTEL_SERVICE_NAME", None)  # OpenTelemetry's own
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                yield ast.unparse(target), str(node.value.value)


def _literal(call: ast.Call) -> str | None:
    if ast.unparse(call.func) == "switch":
        return "off"
    if ast.unparse(call.func) == "one_of":
        return str(ast.literal_eval(call.args[1]))
    for keyword in call.keywords:
        if keyword.arg == "default":
            try:
                value = ast.literal_eval(keyword.value)
            except ValueError:
                return None
            value = ",".join(value) if isinstance(value, list) else value
            return str(value) if value != "" else None
    return None


SETTING = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \|(.*)\|$", re.MULTILINE)


def settings_page(page: str, facts: dict[str, Fact]) -> str:
    """Return the page with kinds and plain defaults as the code has them, and a row for every setting."""
    rows = {match[1]: [cell.strip() for cell in match[2].split(" | ")] for match in SETTING.finditer(page)}
    lines = []
    for variable in sorted(facts, key=lambda name: list(rows).index(name) if name in rows else len(rows)):
        *_, default, meaning = ["", "", "none", "", *rows.get(variable, [])][-3:]
        fact = facts[variable]
        default = f"`{fact.default}`" if fact.default is not None else default
        lines.append(f"| `{variable}` | {fact.kind} | {default} | {meaning} |\n")
    head = "| variable | kind | default | meaning |\n| --- | --- | --- | --- |\n"
    begins = page.index("| variable |")
    ends = page.index("\n\n", begins) + 1
    return page[:begins] + head + "".join(lines) + page[ends:]


# ---------- API ----------

# Every operation may answer these.
EVERYWHERE = {"200", "201", "204", "400", "401", "403", "404", "406", "415"}


def api_page() -> str:
    """Return the page with every operation of the OpenAPI document."""
    from drf_spectacular.generators import SchemaGenerator

    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for path, methods in document["paths"].items():
        group = path.removeprefix("/api/").split("/")[0]
        for method, operation in methods.items():
            called = f"`{method.upper()} {path}`"
            row = called, _about(operation), _takes(operation, document)
            groups.setdefault(group, []).append(row)
    parts = [
        "# API operations\n",
        MADE + "\n",
        "Every address of the [API](api.md), with what it takes: filters in the query, fields of the body;\n"
        "required ones are bold. `/api/docs/` has their types and the answers.\n",
    ]
    for group, rows in sorted(groups.items()):
        title = group.replace("-", " ").replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n{table(('operation', 'does', 'takes'), rows)}")
    return "\n".join(parts)


def _about(operation: dict[str, Any]) -> str:
    text = " ".join(str(operation.get("description", "")).split())
    more = sorted(code for code in operation["responses"] if code not in EVERYWHERE)
    named = [code for code in more if code not in text]
    return text + (f" May answer {', '.join(named)}." if named else "")


def _takes(operation: dict[str, Any], document: dict[str, Any]) -> str:
    query = [
        _name(one["name"], needed=one.get("required", False))
        for one in operation.get("parameters", [])
        if one["in"] == "query"
    ]
    contents = operation.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = next((one["schema"] for one in contents.values()), {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    needed = schema.get("required", [])
    body = [_name(name, needed=name in needed) for name in schema.get("properties", {})]
    parts = [("query", query), ("body", body)]
    return "; ".join(f"{where}: {', '.join(names)}" for where, names in parts if names)


def _name(name: str, *, needed: bool) -> str:
    return f"**`{name}`**" if needed else f"`{name}`"


if __name__ == "__main__":
    main()
