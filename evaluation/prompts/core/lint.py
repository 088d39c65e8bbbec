"""Finds errors and likely errors in a criterion's prompt before anyone pays for a try."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from evaluation.prompts.core.costar import COSTAR, PREAMBLE, sections

LONG_WORDS = 900  # twice the longest shipped prompt

# NB: texts are untrusted and long: no adjacent repeats that match the same characters.
_SLOT = re.compile(r"\{\{([^{}\n]*)\}\}")
_KNOWN_SLOTS = ("knowledge",)
_VERDICT_LINE = re.compile(r"^[ \t>*`#-]*verdicts?[^\w\n]*$", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(
    r"\b(?:json|yaml|xml)\b|\b(?:answer|reply|respond|return|output)\s+"
    r"(?:only\s+|just\s+|simply\s+)?(?:with\s+)?"
    r"[\"'“]?(?:true|false|yes|no)\b",
    re.IGNORECASE,
)
_HABITS = {
    re.compile(r"\bstep[ -]by[ -]step\b", re.IGNORECASE): "the engine already requests evidence in order",
    re.compile(r"\bbe (?:very |more |less )?(?:strict|lenient|harsh|generous)\b", re.IGNORECASE): (
        "models read such words differently: say what counts"
    ),
}
_PERSONAL = {
    "an e-mail address": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,}\b"),
    "a card or account number": re.compile(r"\b(?:\d[ -]?){13,19}\b"),
    "a telephone number": re.compile(r"(?<!\w)\+\d[\d ()/-]{7,}\d"),
}


class Level(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem; `section` is a CO-STAR heading in lower case, "" for the whole prompt."""

    level: Level
    section: str
    message: str

    @property
    def text(self) -> str:
        """Return section and message."""
        where = f"# {self.section.capitalize()}: " if self.section else ""
        return f"{where}{self.message}"

    @property
    def line(self) -> str:
        """Return the finding in one line."""
        return f"{self.level}: {self.text}"


def lint_prompt(text: str, *, question: str, has_articles: bool) -> tuple[Finding, ...]:
    """Return the problems of a prompt, errors first.

    Parameters
    ----------
    text : the Markdown with its CO-STAR headings.
    question : the criterion's, as raters see it.
    has_articles : whether the criterion reads knowledge.

    Examples
    --------
    >>> findings = lint_prompt("# Objective\\nIs it so?", question="Is it so?", has_articles=False)
    >>> [(finding.level.value, finding.section) for finding in findings][:2]
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
        yield Finding(Level.WARNING, PREAMBLE, "has text before the first heading")


def _question(texts: dict[str, str], question: str) -> Iterator[Finding]:
    """Check that the judge answers the question that raters answer."""
    objective = " ".join(texts.get("objective", "").split())
    if objective and " ".join(question.split()) not in objective:
        message = "does not ask the criterion's question word for word, as raters see it"
        yield Finding(Level.WARNING, "objective", message)


def _form(texts: dict[str, str]) -> Iterator[Finding]:
    """Check that the prompt leaves the form of the answer to the engine."""
    for name, text in texts.items():
        if _VERDICT_LINE.search(text) and name != "examples":
            yield Finding(Level.ERROR, name, "contains a VERDICTS block: remove it, the engine adds one")
        elif match := _FORM.search(text):
            message = f"“{match[0]}”: the engine requests prose and a VERDICTS block only"
            yield Finding(Level.ERROR if name == "response" else Level.WARNING, name, message)


def _slots(texts: dict[str, str], *, has_articles: bool) -> Iterator[Finding]:
    used = [(name, slot.strip(" \t")) for name, text in texts.items() for slot in _SLOT.findall(text)]
    for name, slot in used:
        if slot not in _KNOWN_SLOTS:
            yield Finding(Level.ERROR, name, f"{{{{{slot}}}}} is not a variable; use {{{{knowledge}}}}")
    asks = [slot for _, slot in used if slot == "knowledge"]
    if has_articles and not asks:
        message = "has no line {{knowledge}}: article names are added at the end of the prompt"
        yield Finding(Level.WARNING, "context", message)
    if asks and not has_articles:
        yield Finding(Level.WARNING, "context", "uses {{knowledge}}, but the criterion reads no article")


def _words(texts: dict[str, str]) -> Iterator[Finding]:
    length = sum(len(text.split()) for text in texts.values())
    if length > LONG_WORDS:
        yield Finding(
            Level.WARNING, PREAMBLE, f"has {length:,} words: judges skip parts of prompts over {LONG_WORDS}"
        )
    for name, text in texts.items():
        for pattern, why in _HABITS.items():
            if match := pattern.search(text):
                yield Finding(Level.WARNING, name, f"“{match[0]}”: {why}")
        for what, pattern in _PERSONAL.items():
            if pattern.search(text):
                yield Finding(Level.WARNING, name, f"contains what looks like {what}")
