"""Adds a version of a criterion's prompt."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from evaluation.core.examples import LONGEST_RATIONALE, advice
from evaluation.models.prompts import PromptVersion
from evaluation.selectors.criteria import prompt_findings
from evaluation.services.examples import ExampleChoice, PromptRefused, prompt_version_add
from evaluation.services.prompts import prompt_promote
from labeling.core.importing import KEY_LIMIT, Fields, Ignored, read_records, read_text
from labeling.core.problems import ImportProblem, InputProblem, shown
from labeling.management.base import WorkbenchCommand
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion

FIELDS = frozenset(("chat_id", "turns", "value", "rationale"))
MOST_LINES = 100  # far more than a prompt takes: the service says what is too many


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """One line of an examples file."""

    chat_id: str
    first_turn: int
    last_turn: int
    value: bool | None
    rationale: str


class Command(WorkbenchCommand):
    help = "Add a version of a criterion's prompt, with worked examples if wanted; it is a draft at first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--criterion", required=True, metavar="KEY")
        parser.add_argument("--prompt", required=True, type=Path, metavar="FILE.md")
        parser.add_argument(
            "--examples", type=Path, metavar="FILE.jsonl", help="0 to 4 excerpts of train chats"
        )
        parser.add_argument("--reason", default="", help="why this version")
        parser.add_argument(
            "--promote",
            action="store_true",
            help="make it the champion at once, past any gate; needs --reason",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["promote"] and not options["reason"].strip():
            raise InputProblem("--promote needs a --reason")
        criterion = Criterion.objects.filter(key=options["criterion"]).first()
        if criterion is None:
            raise InputProblem(f"--criterion: there is no criterion {shown(options['criterion'])}")
        with transaction.atomic():
            version = self._add(criterion, options["prompt"], options["examples"], options["reason"])
            if options["promote"]:
                prompt_promote(version=version, reason=options["reason"])
        state = "the champion now" if options["promote"] else "not promoted"
        self.answer(
            {"criterion": criterion.key, "version": version.number, "promoted": options["promote"]},
            f"{criterion.key}: version {version.number}, {state}",
        )

    def _add(self, criterion: Criterion, prompt: Path, examples: Path | None, reason: str) -> PromptVersion:
        text = read_text(prompt)
        lines = self._lines(examples) if examples else []
        choices = _choices(examples, lines)
        try:
            version = prompt_version_add(criterion=criterion, text=text, examples=choices, reason=reason)
        except PromptRefused as problem:
            raise _in_file(problem, prompt, examples, lines) from None
        for finding in prompt_findings(criterion=criterion, text=text):
            self.note(f"{prompt}: {finding.line}")
        topics = [choice.chat.topic.key for choice in choices]
        for note in advice([choice.value for choice in choices], topics=topics):
            self.note(note)
        return version

    def _lines(self, path: Path) -> list[tuple[int, ExampleLine]]:
        ignored = Ignored()
        lines: list[tuple[int, ExampleLine]] = []
        for number, line in read_records(path, lambda fields: _line(fields, ignored)):
            lines.append((number, line))
            if len(lines) > MOST_LINES:
                raise ImportProblem(str(path), number, "", f"more than {MOST_LINES} examples")
        self.note_ignored(ignored.counts)
        return lines


def _line(fields: Fields, ignored: Ignored) -> ExampleLine:
    ignored.note(fields.unknown(FIELDS))
    chat_id, turns = fields.text("chat_id", limit=KEY_LIMIT, blank=False), fields.items("turns")
    whole = [turn for turn in turns if isinstance(turn, int) and not isinstance(turn, bool)]
    if len(turns) != 2 or len(whole) != 2:
        raise fields.refuse("turns", f"must be the first and the last turn, as [2, 5], not {shown(turns)}")
    rationale = fields.text("rationale", limit=LONGEST_RATIONALE, blank=False)
    return ExampleLine(chat_id, whole[0], whole[1], fields.answer("value"), rationale)


def _choices(path: Path | None, lines: list[tuple[int, ExampleLine]]) -> list[ExampleChoice]:
    chats = Chat.objects.select_related("topic").in_bulk(
        {line.chat_id for _, line in lines}, field_name="external_id"
    )
    for number, line in lines:
        if line.chat_id not in chats:
            raise ImportProblem(str(path), number, "chat_id", f"no chat {shown(line.chat_id)}")
    return [
        ExampleChoice(chats[line.chat_id], line.first_turn, line.last_turn, line.value, line.rationale)
        for _, line in lines
    ]


def _in_file(
    problem: PromptRefused, prompt: Path, examples: Path | None, lines: list[tuple[int, ExampleLine]]
) -> ImportProblem:
    """The problem with the file and line it comes from."""
    if problem.field == "prompt" or examples is None:
        return ImportProblem(str(prompt), None, "", problem.message)
    number = None if problem.index is None else lines[problem.index][0]
    return ImportProblem(str(examples), number, problem.field, problem.message)
