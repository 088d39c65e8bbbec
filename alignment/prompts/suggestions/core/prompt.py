"""The request for a revised prompt; equal material gives equal bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluation.core.transcript_fencing import chat_block, text_block
from evaluation.core.types import Chat, PromptMessage, Windows
from evaluation.engines.core.windows import CHARACTERS_PER_TOKEN, split_into_windows
from evaluation.prompts.core import sections
from evaluation.prompts.core.costar import COSTAR, fill_knowledge
from evaluation.prompts.core.definition import Definition

CHAT_TOKENS = 24_000  # for all chats of a request together
ANSWERS = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}
KEEPS_SLOT = "keeps the line `{{knowledge}}` where it stands;"
NO_SLOT = "has no `{{…}}`: this criterion reads no knowledge there;"
KEEPS_EXAMPLES = "keeps the part under `# Examples` unchanged, to the letter;"
NO_EXAMPLES = "has no examples: they are chosen elsewhere and stay as they are;"


@dataclass(frozen=True, slots=True)
class Opinion:
    """An answer and its reason; None is not applicable."""

    who: str
    value: bool | None
    rationale: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A chat on which consensus (`people`) and judge differ; `turns` are those that either cites."""

    chat: Chat
    people: bool
    judge: bool
    opinions: tuple[Opinion, ...]
    rationale: str
    turns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Material:
    """The material of a suggestion: the raters' texts, current prompt, disagreements, open notes.

    Without disagreements the prompt is written from the raters' texts.
    """

    asked: Definition
    prompt: str
    disagreements: tuple[Disagreement, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def duty(self) -> str:
        """Return the end of the names of its fixed texts."""
        return "" if self.disagreements else "_texts"


def suggestion_messages(material: Material, *, fence_secret: bytes) -> tuple[PromptMessage, PromptMessage]:
    """Return system and user message. Each text from outside has its own fence."""
    room = CHAT_TOKENS // max(len(material.disagreements), 1)
    numbered = enumerate(material.disagreements, start=1)
    user = (
        f"# The question\n{material.asked.question}\n\nIts definition: {material.asked.definition}",
        *(() if material.disagreements else _raters_texts(material.asked, secret=fence_secret)),
        "# The prompt as it stands",
        text_block(kind="prompt", text=material.prompt, secret=fence_secret),
        *(["# Where people and judge differ"] if material.disagreements else []),
        *(part for n, one in numbered for part in _disagreement(n, one, room=room, secret=fence_secret)),
        *_notes(material.notes, secret=fence_secret),
        _duty(material),
    )
    system = _text(f"system{material.duty}")
    return PromptMessage("system", (system,)), PromptMessage("user", user)


def _raters_texts(asked: Definition, *, secret: bytes) -> Iterable[str]:
    texts = {
        "The raters' guideline": asked.guideline,
        "The raters' example of True": asked.true_example,
        "The raters' example of False": asked.false_example,
    }
    for heading, text in texts.items():
        if text.strip():
            yield f"# {heading}"
            yield text_block(kind="text", text=text, secret=secret)
    yield f"Not applicable is {'' if asked.allow_na else 'not '}a possible answer."


def shown_part(one: Disagreement, *, tokens: int) -> Chat:
    """Return the chat; if it is too long, the consecutive messages with most cited turns."""
    parts = split_into_windows(one.chat, Windows(tokens=tokens, overlap=0))
    return max(parts, key=lambda part: len(one.turns & {message.n for message in part.messages}))


def _disagreement(n: int, one: Disagreement, *, room: int, secret: bytes) -> Iterable[str]:
    yield f"## Chat {n}\nPeople decided {ANSWERS[one.people]}, the judge said {ANSWERS[one.judge]}."
    part = shown_part(one, tokens=room)
    if len(part.messages) < len(one.chat.messages):
        first, last, end = part.messages[0].n, part.messages[-1].n, one.chat.messages[-1].n
        yield f"The chat is too long to be shown whole: of m1 to m{end} only m{first} to m{last} follow."
    yield chat_block(chat=part, secret=secret)
    for opinion in one.opinions:
        yield f"{opinion.who}: {ANSWERS[opinion.value]}{_because(opinion.rationale, 'label', secret)}"
    yield f"The judge: {ANSWERS[one.judge]}{_because(one.rationale, 'rationale', secret)}"


def _because(text: str, kind: str, secret: bytes) -> str:
    return (
        f", because\n{text_block(kind=kind, text=text, secret=secret)}"
        if text.strip()
        else ", no reason given"
    )


def _notes(notes: Sequence[str], *, secret: bytes) -> Iterable[str]:
    if notes:
        yield "# What raters found unclear in the criterion"
        yield from (text_block(kind="note", text=note, secret=secret) for note in notes)


def _duty(material: Material) -> str:
    places = {
        "headings": ", ".join(f"`# {name.capitalize()}`" for name in COSTAR),
        "question": material.asked.question,
        "slot": KEEPS_SLOT if has_slot(material.prompt) else NO_SLOT,
        "examples": KEEPS_EXAMPLES if "examples" in sections(material.prompt) else NO_EXAMPLES,
    }
    return _text(f"duty{material.duty}").format_map(places)


def has_slot(prompt: str) -> bool:
    """Return whether a prompt has the knowledge line."""
    return fill_knowledge(prompt, knowledge="")[1]


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()


def room_for(prompt: str, *, reasons: bool) -> int:
    """Return the token limit of the answer: prose, 1.5 times the prompt, and tokens for reasoning.

    >>> room_for("x" * 4000, reasons=False)
    3000
    """
    return 1500 + len(prompt) * 3 // (2 * CHARACTERS_PER_TOKEN) + (12_000 if reasons else 0)
