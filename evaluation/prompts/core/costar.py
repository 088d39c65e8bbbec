"""Splits a criterion's prompt into its CO-STAR sections, and puts changed sections back in their places."""

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
    """Return the text under each CO-STAR heading, keys in lower case; text before the first under "".

    A heading given twice is joined. Headings inside code fences, and other headings, are ordinary text.
    Sections without text are left out.

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
    """Return `text` with the line `{{knowledge}}` replaced, and whether it had one."""
    filled, count = _SLOT.subn(lambda _: knowledge, text)
    return filled, count > 0


def panes_of(markdown: str) -> dict[str, str] | None:
    """Return the text of each of the six sections, "" for one that is not there.

    None for a text that cannot be edited section by section without moving or hiding something of it: words
    before the first heading, a section of examples, a heading twice or out of order, a code block that does
    not end, CR line ends.

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

    A section that the text lacks gets its heading, in CO-STAR order, once it has words. With what `panes_of`
    returned it is the text itself. Raises FieldProblem, its field the section, for a section that would not
    end where its pane does, and with field "sections" for a text without panes.

    >>> with_panes("# Context\\nA shop.\\n", {"context": "A bank.", "objective": "Is it so?"})
    '# Context\\nA bank.\\n\\n# Objective\\nIs it so?\\n'
    """
    if panes_of(markdown) is None:
        raise FieldProblem("sections", "this prompt holds more than the six sections: send its whole text")
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
    """(heading line, what follows it) in order, line ends and all; the first heading is ""."""
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
    """Why a text cannot be a section's; "" where it can."""
    _, *others = _parts(pane)
    if others:
        return f"“{others[0][0].strip()}” begins a section of its own"
    fences = sum(bool(_CODE_FENCE.match(line)) for line in pane.split("\n"))
    return "a code block is opened and not closed (```)" if fences % 2 else ""


def _ends(heading: str, pane: str) -> bool:
    """Whether a line end belongs behind the heading: it had one, or words come now."""
    return heading.endswith("\n") or bool(pane)


def _in_place_of(body: str, pane: str) -> str:
    """The words in place of a section's own, with the space that was around them."""
    own = body.strip()
    if not own:
        return pane + (body or "\n" * bool(pane))
    before, after = body.split(own, 1)
    return f"{before}{pane}{after}"
