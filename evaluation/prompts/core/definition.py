"""A criterion's texts as raters read them: the prompt made from them, and what changed since a prompt."""

import re
from dataclasses import dataclass

# What would end a section, hide the later ones, or stand for something else.
_MARKUP = re.compile(r"^[ \t]*(?:#+[ \t]*|(?:```|~~~).*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Definition:
    """The texts and the rule of one version of a criterion."""

    question: str
    definition: str
    guideline: str = ""
    true_example: str = ""
    false_example: str = ""
    allow_na: bool = False


def changed_texts(before: Definition, now: Definition) -> tuple[str, ...]:
    """Return what differs between two versions of a criterion, in words.

    Examples
    --------
    >>> changed_texts(Definition("Polite?", "Greets."), Definition("Polite?", "Greets and thanks."))
    ('definition',)
    """
    pairs = {
        "question": (before.question, now.question),
        "definition": (before.definition, now.definition),
        "guideline": (before.guideline, now.guideline),
        "examples": ((before.true_example, before.false_example), (now.true_example, now.false_example)),
        "not-applicable rule": (before.allow_na, now.allow_na),
    }
    return tuple(name for name, (old, new) in pairs.items() if old != new)


def generated_text(asked: Definition, *, knowledge: bool) -> str:
    """Return a CO-STAR prompt from the raters' texts; `knowledge` adds the place for articles."""
    context = "The chats are between a support chatbot and its customers."
    if knowledge:
        context += " What is known about the business:\n\n{{knowledge}}"
    objective = [asked.question, _plain(asked.definition)]
    if asked.guideline:
        objective.append(f"What raters are told:\n\n{_plain(asked.guideline)}")
    objective.append("\n".join(_rules(asked, knowledge=knowledge)))
    return "\n\n".join(
        [
            f"# Context\n{context}",
            "# Objective\n" + "\n\n".join(objective),
            "# Style\nLook at the whole chat. What the messages say decides.",
            "# Tone\nImpartial towards bot and customer, neither lenient nor harsh.",
            "# Audience\nA reviewer who checks the answer against the chat: name message numbers.",
            "# Response\nA rationale of at most 120 words that starts from the evidence.\n",
        ]
    )


def _rules(asked: Definition, *, knowledge: bool) -> list[str]:
    examples = {"True": asked.true_example, "False": asked.false_example}
    rules = [f"- **Example of {answer}:** {_one_line(text)}" for answer, text in examples.items() if text]
    if asked.allow_na:
        rules.append("- **Not applicable:** only if the definition says that the question does not apply.")
    shown = "neither the knowledge nor the chat shows" if knowledge else "the chat does not show"
    silence = f"what {shown} did not happen. What the definition does not name does not count."
    every = "" if asked.allow_na else " Every chat gets True or False."
    return [*rules, f"- **Silence:** {silence}{every}"]


def _plain(text: str) -> str:
    """Return a rater's text as plain text of a section: without headings, code fences and variables."""
    return _MARKUP.sub("", text.strip()).replace("{{", "{ {")


def _one_line(text: str) -> str:
    return " ".join(_plain(text).split())
