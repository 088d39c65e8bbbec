"""Calls that the product does not make: text as code, weak hashes, guessable secrets, foreign windows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROOT: Path = settings.BASE_DIR
APPS = ("lace_site", "alignment", "evaluation", "labeling", "common")
# Run text as code, or make objects out of it.
AS_CODE = {
    *("eval", "exec", "compile", "__import__", "execfile"),
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("pickle.loads", "pickle.load", "marshal.loads", "shelve.open", "yaml.load", "jsonpickle.decode"),
    *("Template", "template.Template", "engines.from_string"),
}
WEAK = {"md5", "sha1", "hashlib.md5", "hashlib.sha1"}
# A weak hash that protects nothing: it puts chats into an order that PostgreSQL and Python share.
ORDERS = {"labeling/sampling/core/chat_samples.py"}
GUESSABLE = re.compile(r"^random\.|^Random$|^uuid\.uuid1$")


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, str, ast.Call]]:
    """Every call of the product: its place, its name and the call."""
    # NB: unparsing every call would take seconds.
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", name_of(node.func), node)
        for path in files(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def name_of(called: ast.expr) -> str:
    """The dotted name that is called; "" for what has none."""
    if isinstance(called, ast.Name):
        return called.id
    if isinstance(called, ast.Attribute):
        return f"{name_of(called.value)}.{called.attr}".removeprefix(".")
    return ""


def files(ending: str) -> Iterator[Path]:
    for app in APPS:
        found = (ROOT / app).rglob(f"*{ending}")
        yield from (path for path in found if not {"migrations", "vendor"} & set(path.parts))


def test_no_call_runs_text_as_code(calls: list[tuple[str, str, ast.Call]]) -> None:
    assert len(calls) > 10_000
    shells = [
        place
        for place, _, call in calls
        for one in call.keywords
        if one.arg == "shell" and not (isinstance(one.value, ast.Constant) and one.value.value is False)
    ]
    assert [f"{place} {name}" for place, name, _ in calls if name in AS_CODE] + shells == []


def test_no_pattern_is_made_of_a_text_without_escaping(calls: list[tuple[str, str, ast.Call]]) -> None:
    """Patterns are constants, made of constants of ours, or escaped."""
    found = []
    for place, name, call in calls:
        if name not in ("re.compile", "re.search", "re.match", "re.sub", "re.split", "re.findall"):
            continue
        for part in ast.walk(call.args[0]):
            if isinstance(part, ast.FormattedValue) and not of_ours(part.value):
                found.append(f"{place} {ast.unparse(call.args[0])[:80]}")
    assert found == []


def of_ours(value: ast.expr) -> bool:
    """Whether a part of a pattern is escaped, a number, or a constant by its name in capitals."""
    text = ast.unparse(value)
    return "re.escape" in text or text.replace("_", "").split(".")[-1].isupper() or text in PARTS


# Parts of patterns that the code beside them makes of constants, or has escaped before.
PARTS = {
    *("'|'.join(_SPEAKERS)", "'|'.join(EFFORTS)", "'|'.join((*KINDS, *NAMED_KINDS))"),
    "'|'.join((DRAFT_MARK, *(role.mark for role in ADVOCATES)))",
    *("_PART.pattern", "_NAMES.format('', 'START', 'begin')"),
    *("heading", "'|'.join(spelt)"),  # escaped in the line above
}


def test_no_weak_hash_protects_anything(calls: list[tuple[str, str, ast.Call]]) -> None:
    weak = {place for place, name, _ in calls if name in WEAK}
    assert {place.split(":")[0] for place in weak} == ORDERS
    algorithms = [
        place
        for place, name, call in calls
        if name == "hashlib.new"
        for one in call.args
        if "1" in ast.unparse(one)
    ]
    assert algorithms == []


def test_no_secret_comes_from_a_guessable_generator(calls: list[tuple[str, str, ast.Call]]) -> None:
    """`random` draws samples, by a stored seed; secrets come from `secrets`."""
    secret_rooms = (
        "labeling/people",
        "labeling/models/people",
        "evaluation/gateway/keys",
        "alignment/certificates",
    )
    found = [
        f"{place} {name}"
        for place, name, _ in calls
        if GUESSABLE.match(name) and place.startswith(secret_rooms)
    ]
    assert found == []


def test_scripts_listen_to_no_other_window() -> None:
    scripts = list(files(".js"))
    assert len(scripts) > 20
    texts = {path.name: path.read_text(encoding="utf-8") for path in scripts}
    for name, text in texts.items():
        assert 'addEventListener("message"' not in text.replace("channel.addEventListener", ""), name
        assert not re.search(r"(window|parent|opener|top|frames\[.*\])\.postMessage", text), name
        assert not re.search(r"\b(eval|Function)\(|document\.write|\.outerHTML\s*=", text), name
