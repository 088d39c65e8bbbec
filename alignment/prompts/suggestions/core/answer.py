"""Read a suggestion from a model's answer by rule, and find passages that it copied from chats."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alignment.prompts.suggestions.core.prompt import has_slot
from evaluation.core.types import Chat
from evaluation.prompts.core import sections
from evaluation.prompts.core.costar import COSTAR
from evaluation.prompts.core.definition import Definition
from evaluation.prompts.core.leaks import leaked_passages, shingles_of, shorten
from evaluation.prompts.core.lint import Finding, Level, lint_prompt

_MARKER = re.compile(r"^[ \t>*_#`]*revised prompt[ \t*_:`.]*$", re.IGNORECASE | re.MULTILINE)
_REASON = re.compile(r"^[ \t>*_#`-]*reason[ \t*_`]*:(.+)$", re.IGNORECASE | re.MULTILINE)
_EMPHASIS = " \t*_`"
_OPENING = re.compile(r"\s*^(?P<fence>`{3,}|~{3,})[ \t]*(?:[\w-]+[ \t]*)?\n", re.MULTILINE)
LONGEST_REASON = 300


class Unreadable(ValueError):
    """The answer holds no valid revised prompt; the message says why."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revised prompt, the model's prose on its material, and the reason in one line."""

    text: str
    reasons: str
    reason: str


def read_answer(answer: str, *, prompt: str, question: str) -> Revision:
    """Return the revision of `prompt` in an answer.

    Raises Unreadable if a part is missing or repeated, or if the revision loses a heading, the question, the
    knowledge line or the examples, or asks for a form of answer.

    >>> try:
    ...     read_answer("Nothing to change.", prompt="", question="Is it so?")
    ... except Unreadable as error:
    ...     print(error)
    the answer has no line REVISED PROMPT
    """
    lines = answer.replace("\r\n", "\n").replace("\r", "\n").strip()
    markers = list(_MARKER.finditer(lines))
    if len(markers) != 1:
        count = "no line" if not markers else "more than one line"
        raise Unreadable(f"the answer has {count} REVISED PROMPT")
    preface = lines[: markers[0].start()].strip()
    reasons = [line for match in _REASON.findall(preface) if (line := match.strip(_EMPHASIS))]
    if len(reasons) != 1:
        raise Unreadable(
            "the answer has no line REASON" if not reasons else "the answer has two lines REASON"
        )
    prose = _REASON.sub("", preface).strip()
    if not prose:
        raise Unreadable("the answer has no prose before the revised prompt")
    text = _block(lines[markers[0].end() :])
    _check(text, prompt=prompt, question=question)
    return Revision(text, prose, reasons[0][:LONGEST_REASON])


def _block(rest: str) -> str:
    """Return the text between the first fence and the last line, which must be the same fence."""
    opening = _OPENING.match(rest)
    if opening is None:
        raise Unreadable("no fenced prompt follows the line REVISED PROMPT")
    body = rest[opening.end() :].rstrip()
    head, _, last = body.rpartition("\n")
    if last.strip() != opening["fence"]:
        raise Unreadable("the fenced prompt does not end the answer")
    return f"{head.strip()}\n"


def _check(text: str, *, prompt: str, question: str) -> None:
    parts = sections(text)
    for name in COSTAR:
        if name not in parts:
            raise Unreadable(f"the revised prompt has nothing under # {name.capitalize()}")
    if " ".join(question.split()) not in " ".join(parts["objective"].split()):
        raise Unreadable("the revised prompt does not ask the question word for word")
    if has_slot(prompt) and not has_slot(text):
        raise Unreadable("the revised prompt has lost the line {{knowledge}}")
    if parts.get("examples") != sections(prompt).get("examples"):
        raise Unreadable("the revised prompt changes the examples")
    for finding in lint_prompt(text, asked=Definition(question, ""), has_articles=has_slot(prompt)):
        if finding.level == Level.ERROR:
            raise Unreadable(f"the revised prompt: {finding.line.removeprefix('error: ')}")


def copied_findings(text: str, *, before: str, chats: Sequence[Chat]) -> Iterator[Finding]:
    """Yield passages of each section copied from a chat, numbered from 1, unless `before` had them.

    They would give the judge the answers on these chats.

    >>> from evaluation.core.types import Message
    >>> chat = Chat("h", (Message(1, "user", "my dog ate the voucher for the blue bicycle"),))
    >>> text = "# Style\\nMy dog ate the voucher for the blue car"
    >>> [finding.message for finding in copied_findings(text, before="", chats=[chat])]
    ['repeats words of chat 1: “My dog ate the voucher for the blue”']
    """
    old = shingles_of([before])
    for number, chat in enumerate(chats, start=1):
        known = np.setdiff1d(shingles_of(message.content for message in chat.messages), old)
        for name, part in sections(text).items():
            for passage in leaked_passages(part, known=known):
                message = f"repeats words of chat {number}: “{shorten(passage)}”"
                yield Finding(Level.WARNING, name, message)
