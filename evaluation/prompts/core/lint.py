"""Finds errors and likely errors in a criterion's prompt before anyone pays for a try."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from evaluation.knowledge.core.words import language_of, stems_of
from evaluation.prompts.core.costar import COSTAR, PREAMBLE, sections
from evaluation.prompts.core.definition import Definition

LONG_WORDS = 900  # twice the longest shipped prompt
# Of the definition's stems: the shipped prompts share 84% and more with theirs, other prompts up to 47%.
LEAST_SHARED = 0.4
FEWEST_STEMS = 6  # a shorter definition can be said in other words
ALIKE = 0.6  # of an example's stems in one rule of the prompt

# NB: texts are untrusted and long: no adjacent repeats that match the same characters.
_SLOT = re.compile(r"\{\{([^{}\n]*)\}\}")
_KNOWN_SLOTS = ("knowledge",)
_KNOWLEDGE = re.compile(r"(?<!no )(?<!no business )\bknowledge\b|\barticle key\b", re.IGNORECASE)
_RULE = re.compile(r"^[ \t]*[-*+] [^\n:]{0,40}\b(true|false)\b[^\n:]{0,20}:", re.IGNORECASE | re.MULTILINE)
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


def lint_prompt(text: str, *, asked: Definition, has_articles: bool) -> tuple[Finding, ...]:
    """Return the problems of a prompt, errors first.

    Parameters
    ----------
    text : the Markdown with its CO-STAR headings.
    asked : the criterion's texts, as raters see them.
    has_articles : whether the criterion reads knowledge.

    Examples
    --------
    >>> asked = Definition("Is it so?", "It is so if it is.")
    >>> findings = lint_prompt("# Objective\\nIs it so?", asked=asked, has_articles=False)
    >>> [(finding.level.value, finding.section) for finding in findings][:2]
    [('warning', 'context'), ('warning', 'style')]
    """
    texts = sections(text)
    findings = [
        *_missing(texts),
        *_question(texts, asked.question),
        *_definition(texts, asked),
        *_examples(texts, asked),
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


def _definition(texts: dict[str, str], asked: Definition) -> Iterator[Finding]:
    """Check that the prompt holds the definition that raters follow, in its own or other words."""
    language = language_of(asked.definition)
    wanted = set(stems_of(asked.definition, language))
    shared = wanted & set(stems_of("\n".join(texts.values()), language))
    if len(wanted) >= FEWEST_STEMS and len(shared) < LEAST_SHARED * len(wanted):
        message = "has few words of the definition that raters follow: they and the judge may differ"
        yield Finding(Level.WARNING, "objective", message)


def _examples(texts: dict[str, str], asked: Definition) -> Iterator[Finding]:
    """Check that no rule for one answer repeats the raters' example of the other."""
    examples = {"true": asked.true_example, "false": asked.false_example}
    objective = texts.get("objective", "")
    rules = list(_RULE.finditer(objective))
    for number, rule in enumerate(rules, start=1):
        said = objective[rule.end() : rules[number].start() if number < len(rules) else None]
        answer = rule[1].lower()
        other = "false" if answer == "true" else "true"
        if _alike(said, examples[other]) >= max(ALIKE, _alike(said, examples[answer])):
            message = f"the rule for {answer.title()} repeats the raters' example of {other.title()}"
            yield Finding(Level.WARNING, "objective", message)


def _alike(rule: str, example: str) -> float:
    """Return the share of an example's stems that a rule has; 0 without an example."""
    language = language_of(example)
    wanted = set(stems_of(example, language))
    return len(wanted & set(stems_of(rule, language))) / len(wanted) if wanted else 0.0


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
    named = next((name for name, text in texts.items() if _KNOWLEDGE.search(_SLOT.sub("", text))), None)
    if named is not None and not asks and not has_articles:
        message = "refers to knowledge, but the criterion reads no article: list its articles"
        yield Finding(Level.WARNING, named, message)
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
