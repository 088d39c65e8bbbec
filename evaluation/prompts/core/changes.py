"""The differences between two prompts, section by section."""

from dataclasses import dataclass

from common.diff import Part, word_diff
from evaluation.prompts.core.costar import HEADINGS, PREAMBLE, sections

BEFORE = "Before the first section"


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A changed section, as a word diff."""

    name: str
    parts: tuple[Part, ...]


def prompt_sections(text: str) -> tuple[Section, ...]:
    """Return the sections that have text, in the order of CO-STAR.

    Examples
    --------
    >>> [section.name for section in prompt_sections("# Tone\\nCalm.\\n# Context\\nA shop.")]
    ['Context', 'Tone']
    """
    texts = sections(text)
    return tuple(Section(_title(name), texts[name]) for name in (PREAMBLE, *HEADINGS) if name in texts)


def section_changes(old: str, new: str) -> tuple[SectionChange, ...]:
    """Return each section whose words differ, in the order of CO-STAR.

    A new or removed section differs as a whole.

    Examples
    --------
    >>> changes = section_changes("# Tone\\nCalm.", "# Tone\\nVery calm.\\n# Style\\nShort.")
    >>> [(change.name, [part.kind for part in change.parts]) for change in changes]
    [('Style', ['added']), ('Tone', ['removed', 'added', 'same'])]
    """
    before, after = sections(old), sections(new)
    return tuple(
        SectionChange(_title(name), word_diff(before.get(name, ""), after.get(name, "")))
        for name in (PREAMBLE, *HEADINGS)
        if before.get(name, "") != after.get(name, "")
    )


def _title(name: str) -> str:
    return name.capitalize() or BEFORE
