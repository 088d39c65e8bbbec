"""Reads a prompt's worked examples from a file with one JSON object per line (docs/reference/files.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.jsonl import KEY_LIMIT, Fields, Ignored, read_records
from common.problems import ImportProblem, shown
from evaluation.prompts.core.example_lines import LONGEST_RATIONALE
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused
from labeling.chats.queries import chats_by_external_id
from labeling.models.chats import Chat

FIELDS = frozenset(("chat_id", "turns", "value", "rationale"))
MOST_LINES = 100  # far more than allowed: the service checks the exact limit


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """The examples of a file, with the line of each."""

    path: Path
    choices: tuple[ExampleChoice, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file."""

    chat_id: str
    first_turn: int
    last_turn: int
    value: bool | None
    rationale: str


def examples_read(path: Path, *, ignored: Ignored) -> ExampleFile:
    """Return the examples of a file with their chats. Raises ImportProblem with file, line and field."""
    lines: list[tuple[int, _Line]] = []
    for number, line in read_records(path, lambda fields: _line(fields, ignored)):
        lines.append((number, line))
        if len(lines) > MOST_LINES:
            raise ImportProblem(str(path), number, "", f"more than {MOST_LINES} examples")
    return ExampleFile(path, _choices(path, lines), tuple(number for number, _ in lines))


def refused_in_file(problem: PromptRefused, *, prompt: Path, examples: ExampleFile | None) -> ImportProblem:
    """Return the refusal of a prompt with its file and line."""
    if problem.field == "prompt" or examples is None:
        return ImportProblem(str(prompt), None, "", problem.message)
    number = None if problem.index is None else examples.lines[problem.index]
    return ImportProblem(str(examples.path), number, problem.field, problem.message)


def _line(fields: Fields, ignored: Ignored) -> _Line:
    ignored.note(fields.unknown(FIELDS))
    chat_id, turns = fields.text("chat_id", limit=KEY_LIMIT, blank=False), fields.items("turns")
    whole = [turn for turn in turns if isinstance(turn, int) and not isinstance(turn, bool)]
    if len(turns) != 2 or len(whole) != 2:
        raise fields.refuse("turns", f"must be the first and the last turn, as [2, 5], not {shown(turns)}")
    rationale = fields.text("rationale", limit=LONGEST_RATIONALE, blank=False)
    return _Line(chat_id, whole[0], whole[1], fields.answer("value"), rationale)


def _choices(path: Path, lines: Sequence[tuple[int, _Line]]) -> tuple[ExampleChoice, ...]:
    known = chats_by_external_id({line.chat_id for _, line in lines})
    chats = Chat.objects.select_related("topic").in_bulk([ref.id for ref in known.values()])
    for number, line in lines:
        if line.chat_id not in known:
            raise ImportProblem(str(path), number, "chat_id", f"no chat {shown(line.chat_id)}")
    return tuple(
        ExampleChoice(
            chats[known[line.chat_id].id], line.first_turn, line.last_turn, line.value, line.rationale
        )
        for _, line in lines
    )
