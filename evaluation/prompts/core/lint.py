"""What is wrong, or likely to be, with a criterion's prompt before anybody pays for trying it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from evaluation.prompts.core.costar import COSTAR, PREAMBLE, sections

LONG_WORDS = 900  # twice the longest shipped prompt

# NB: for texts of any length by anybody: no two repeats side by side that may take the same characters.
_SLOT = re.compile(r"\{\{([^{}\n]*)\}\}")
_KNOWN_SLOTS = ("knowledge",)
_VERDICT_LINE = re.compile(r"^[ \t>*`#-]*verdicts?[^\w\n]*$", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(
    r"\b(?:json|yaml|xml)\b|\b(?:answer|reply|respond|return|output)\s+(?:only\s+|just\s+|simply\s+)?(?:with\s+)?"
    r"[\"'“]?(?:true|false|yes|no)\b",
    re.IGNORECASE,
)
_HABITS = {
    re.compile(r"\bstep[ -]by[ -]step\b", re.IGNORECASE): "the engine asks for the evidence in order itself",
    re.compile(r"\bbe (?:very |more |less )?(?:strict|lenient|harsh|generous)\b", re.IGNORECASE): (
        "a threshold in words is read differently by every model: name what counts"
    ),
}
_PERSONAL = {
    "an e-mail address": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,}\b"),
    "a card or account number": re.compile(r"\b(?:\d[ -]?){13,19}\b"),
    "a telephone number": re.compile(r"(?<!\w)\+\d[\d ()/-]{7,}\d"),
}


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at; `section` is a CO-STAR heading in lower case, '' for the whole prompt."""

    level: Level
    section: str
    message: str

    @property
    def line(self) -> str:
        """The finding in one line."""
        where = f"# {self.section.capitalize()}: " if self.section else ""
        return f"{self.level}: {where}{self.message}"


def lint_prompt(text: str, *, question: str, has_articles: bool) -> tuple[Finding, ...]:
    """Look through a prompt, errors first.

    Parameters
    ----------
    text : the Markdown with its CO-STAR headings.
    question : the criterion's, as raters see it.
    has_articles : whether the criterion reads knowledge.

    Examples
    --------
    >>> found = lint_prompt("# Objective\\nIs it so?", question="Is it so?", has_articles=False)
    >>> [(finding.level.value, finding.section) for finding in found][:2]
    [('warning', 'context'), ('warning', 'style')]
    """
    texts = sections(text)
    findings = [
        *_missing(texts),
        *_question(texts, question),
        *_form(texts),
        *_slots(texts, has_articles=has_articles),
        *_words(texts),
    ]
    return tuple(sorted(findings, key=lambda finding: finding.level != Level.ERROR))


def _missing(texts: dict[str, str]) -> Iterator[Finding]:
    for name in COSTAR:
        if name not in texts:
            level = Level.ERROR if name == "objective" else Level.WARNING
            yield Finding(level, name, "is missing or empty")
    if PREAMBLE in texts:
        yield Finding(Level.WARNING, PREAMBLE, "text stands before the first heading")


def _question(texts: dict[str, str], question: str) -> Iterator[Finding]:
    """The judge is to answer what the raters were asked."""
    objective = " ".join(texts.get("objective", "").split())
    if objective and " ".join(question.split()) not in objective:
        message = "does not ask the criterion's question word for word, as raters see it"
        yield Finding(Level.WARNING, "objective", message)


def _form(texts: dict[str, str]) -> Iterator[Finding]:
    """The engine owns the form of the answer: a second one contradicts it."""
    for name, text in texts.items():
        if _VERDICT_LINE.search(text) and name != "examples":
            yield Finding(Level.ERROR, name, "holds a VERDICTS block: the engine asks for that itself")
        elif match := _FORM.search(text):
            message = f"“{match[0]}”: the engine asks for prose and a VERDICTS block, no other form"
            yield Finding(Level.ERROR if name == "response" else Level.WARNING, name, message)


def _slots(texts: dict[str, str], *, has_articles: bool) -> Iterator[Finding]:
    used = [(name, slot.strip(" \t")) for name, text in texts.items() for slot in _SLOT.findall(text)]
    for name, slot in used:
        if slot not in _KNOWN_SLOTS:
            yield Finding(Level.ERROR, name, f"{{{{{slot}}}}} is no variable; there is {{{{knowledge}}}}")
    asks = [slot for _, slot in used if slot == "knowledge"]
    if has_articles and not asks:
        message = "has no line {{knowledge}}: the names of the articles go to the end of the prompt"
        yield Finding(Level.WARNING, "context", message)
    if asks and not has_articles:
        yield Finding(Level.WARNING, "context", "asks for {{knowledge}}, but the criterion reads no article")


def _words(texts: dict[str, str]) -> Iterator[Finding]:
    length = sum(len(text.split()) for text in texts.values())
    if length > LONG_WORDS:
        yield Finding(
            Level.WARNING, PREAMBLE, f"is {length:,} words long: past {LONG_WORDS} judges skip parts"
        )
    for name, text in texts.items():
        for pattern, why in _HABITS.items():
            if match := pattern.search(text):
                yield Finding(Level.WARNING, name, f"“{match[0]}”: {why}")
        for what, pattern in _PERSONAL.items():
            if pattern.search(text):
                yield Finding(Level.WARNING, name, f"holds what looks like {what}")
