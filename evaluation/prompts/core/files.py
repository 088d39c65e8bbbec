"""A prompt as a file: a head that names the version, then the Markdown text."""

import re
from dataclasses import dataclass

from common.problems import FieldProblem, shown

MARK = "---"
_ENTRY = re.compile(r"^([a-z0-9]+): (\S+)$")
_NAMES = frozenset(("criterion", "version", "sha256"))


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt's text; criterion key, version number and content hash if the file has a head."""

    text: str
    criterion: str = ""
    version: int | None = None
    sha256: str = ""


def prompt_file_text(prompt: PromptFile) -> str:
    """Return the file's content; the same prompt gives the same bytes, with a line end at the end.

    Examples
    --------
    >>> print(prompt_file_text(PromptFile("# Objective\\nIs it so?", "polite", 3, "ab12")), end="")
    ---
    criterion: polite
    version: 3
    sha256: ab12
    ---
    # Objective
    Is it so?
    """
    head = (f"criterion: {prompt.criterion}", f"version: {prompt.version}", f"sha256: {prompt.sha256}")
    text = prompt.text if prompt.text.endswith("\n") else f"{prompt.text}\n"
    return "\n".join((MARK, *head, MARK, text))


def prompt_file_read(content: str) -> PromptFile:
    """Return the prompt of a file; without a head the whole file is the text.

    Raises
    ------
    FieldProblem : an open head, a line that is not `name: value`, an unknown or repeated name, or a version
        that is not a number.

    Examples
    --------
    >>> prompt_file_read("---\\ncriterion: polite\\nversion: 3\\n---\\n# Objective\\n").version
    3
    """
    first, *lines = content.split("\n")
    if first.rstrip() != MARK:
        return PromptFile(content)
    ends = [number for number, line in enumerate(lines) if line.rstrip() == MARK]
    if not ends:
        raise FieldProblem("head", f"begins with {MARK} and never ends")
    head = _head(lines[: ends[0]])
    version = head.get("version")
    if version is not None and not re.fullmatch(r"[1-9]\d{0,8}", version):
        raise FieldProblem("version", f"must be a version number, not {shown(version)}")
    text = "\n".join(lines[ends[0] + 1 :])
    return PromptFile(
        text, head.get("criterion", ""), int(version) if version else None, head.get("sha256", "")
    )


def _head(lines: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in lines:
        entry = _ENTRY.match(line.rstrip())
        if entry is None:
            raise FieldProblem("head", f"must hold lines `name: value`, not {shown(line)}")
        name, value = entry.groups()
        if name not in _NAMES:
            raise FieldProblem(
                name, f"is not an entry of a prompt's head; allowed are {', '.join(sorted(_NAMES))}"
            )
        if name in entries:
            raise FieldProblem(name, "occurs twice in the head")
        entries[name] = value
    return entries


def same_text(one: str, other: str) -> bool:
    """Return whether two prompts differ only in line ends at their end."""
    return one.rstrip("\n") == other.rstrip("\n")
