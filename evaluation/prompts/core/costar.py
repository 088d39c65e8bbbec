"""Splits a criterion's prompt into its CO-STAR sections, and writes changed sections back."""

import re
from collections.abc import Mapping
from functools import lru_cache

from common.problems import FieldProblem

COSTAR = ("context", "objective", "style", "tone", "audience", "response")
HEADINGS = (*COSTAR, "examples")
PREAMBLE = ""

_HEADING = re.compile(
    r"^#{1,2}[ \t]+(" + "|".join(HEADINGS) + r")(?:[ \t]*:)?(?:[ \t]*#+)?[ \t]*$", re.IGNORECASE
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CODE_FENCE = re.compile(r"^[ \t]*(?:```|~~~)")
_SLOT = re.compile(r"^[ \t]*\{\{[ \t]*knowledge[ \t]*\}\}[ \t]*$", re.MULTILINE)


def sections(markdown: str) -> dict[str, str]:
    """Return the text under each CO-STAR heading, by lower-case name; text before the first one is under "".

    Text of a repeated heading is joined. Other headings, and headings inside code fences, are ordinary text.
    Empty sections are missing.

    Examples
    --------
    >>> sections("# Context\\nA shop.\\n# Tone\\nCalm.")
    {'context': 'A shop.', 'tone': 'Calm.'}
    """
    return dict(_sections(markdown))


@lru_cache(maxsize=256)  # a prompt is the same for every chat
def _sections(markdown: str) -> tuple[tuple[str, str], ...]:
    texts: dict[str, list[str]] = {}
    current, in_code = PREAMBLE, False
    for line in markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        in_code ^= bool(_CODE_FENCE.match(line))
        heading = None if in_code else _HEADING.match(line)
        if heading:
            current = heading[1].lower()
        else:
            texts.setdefault(current, []).append(line)
    joined = {name: "\n".join(lines).strip() for name, lines in texts.items()}
    return tuple((name, text) for name, text in joined.items() if text)


def fill_knowledge(text: str, *, knowledge: str) -> tuple[str, bool]:
    """Return `text` with each line `{{knowledge}}` replaced, and whether there was one."""
    filled, count = _SLOT.subn(lambda _: knowledge, text)
    return filled, count > 0


def panes_of(markdown: str) -> dict[str, str] | None:
    """Return the text of each of the six sections, "" for a missing one.

    Returns
    -------
    None if the text cannot be edited by section without moving or hiding words: text before the first
    heading, a section of examples, a repeated or misplaced heading, an open code block, or CR line ends.

    Examples
    --------
    >>> panes_of("# Objective\\nIs it so?\\n")["objective"]
    'Is it so?'
    """
    (_, before), *parts = _parts(markdown)
    panes = {_named(heading): body.strip() for heading, body in parts}
    in_order = [_named(heading) for heading, _ in parts] == [name for name in COSTAR if name in panes]
    if "\r" in markdown or before.strip() or not in_order or any(map(_fault, panes.values())):
        return None
    return {name: panes.get(name, "") for name in COSTAR}


def with_panes(markdown: str, panes: Mapping[str, str]) -> str:
    """Return the text with these sections in place of its own; headings and the space around them stay.

    A new section gets its heading, in CO-STAR order. The result of `panes_of` gives the text itself.

    Raises
    ------
    FieldProblem : with the section as field, for text that would begin another section or leave a code block
        open; with field "sections" for a text without panes.

    Examples
    --------
    >>> with_panes("# Context\\nA shop.\\n", {"context": "A bank.", "objective": "Is it so?"})
    '# Context\\nA bank.\\n\\n# Objective\\nIs it so?\\n'
    """
    if panes_of(markdown) is None:
        raise FieldProblem("sections", "this prompt has text outside the six sections: send the whole text")
    (_, markdown_out), *parts = _parts(markdown)
    own = {_named(heading): (heading, body) for heading, body in parts}
    added = False
    for name in COSTAR:
        pane = panes.get(name, "").replace("\r\n", "\n").strip()
        if fault := _fault(pane):
            raise FieldProblem(name, fault)
        if name in own:
            heading, body = own[name]
            markdown_out += ("\n" if added else "") + heading.rstrip("\n") + "\n" * _ends(heading, pane)
            markdown_out += _in_place_of(body, pane)
            added = False
        elif pane:
            markdown_out = markdown_out and markdown_out.rstrip("\n") + "\n\n"
            markdown_out += f"# {name.capitalize()}\n{pane}\n"
            added = True
    return markdown_out


def _parts(markdown: str) -> list[tuple[str, str]]:
    """Return (heading line, text after it) in order, with line ends; the first heading is ""."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    in_code = False
    for line in _LINE.findall(markdown):
        in_code ^= bool(_CODE_FENCE.match(line))
        if not in_code and _HEADING.match(line.rstrip("\n")):
            parts.append((line, []))
        else:
            parts[-1][1].append(line)
    return [(heading, "".join(lines)) for heading, lines in parts]


def _named(heading: str) -> str:
    match = _HEADING.match(heading.rstrip("\n"))
    return match[1].lower() if match else ""


def _fault(pane: str) -> str:
    """Return why a text cannot be a section, "" if it can."""
    _, *others = _parts(pane)
    if others:
        return f"“{others[0][0].strip()}” starts another section"
    fences = sum(bool(_CODE_FENCE.match(line)) for line in pane.split("\n"))
    return "a code block is not closed (```)" if fences % 2 else ""


def _ends(heading: str, pane: str) -> bool:
    """Return whether the heading needs a line end: it had one, or text follows now."""
    return heading.endswith("\n") or bool(pane)


def _in_place_of(body: str, pane: str) -> str:
    """Return the new text in place of a section's own, with the same space around it."""
    own = body.strip()
    if not own:
        return pane + (body or "\n" * bool(pane))
    before, after = body.split(own, 1)
    return f"{before}{pane}{after}"
