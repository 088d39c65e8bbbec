"""Writes chats, labels or verdicts of a set in the formats of the import commands, or session scores."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from alignment.exports.queries import (
    SCORE_COLUMNS,
    VERDICT_COLUMNS,
    ExportRun,
    chat_lines,
    export_runs,
    runs_to_export,
    score_lines,
    verdict_lines,
)
from common.commands import WorkbenchCommand
from common.files import csv_lines, json_line, replaced_file
from common.problems import InputProblem, shown
from evaluation.models.runs import Run
from labeling.chats.queries import chat_set_named
from labeling.models.chats import ChatSet
from labeling.transfer.queries.exports import LABELLING, Line

# The lines of one run, and the columns of a CSV.
OF_RUNS: dict[str, tuple[Callable[[ExportRun], Iterator[Line]], Sequence[str]]] = {
    "verdicts": (verdict_lines, VERDICT_COLUMNS),
    "session_scores": (score_lines, SCORE_COLUMNS),
}


class Command(WorkbenchCommand):
    help = "Write chats, labels, verdicts or session scores of a chat set to stdout or to a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["chats", *LABELLING, *OF_RUNS])
        parser.add_argument("--set", required=True, metavar="NAME")
        parser.add_argument(
            "--run",
            type=int,
            metavar="ID",
            help="of verdicts and scores; default: the newest run of each judge",
        )
        parser.add_argument(
            "--format",
            choices=["jsonl", "csv"],
            default="jsonl",
            help="csv is for spreadsheets; not for chats",
        )
        parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="default: stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        what, path = options["what"], options["file"]
        chat_set = chat_set_named(options["set"])
        if chat_set is None:
            raise InputProblem(f"--set: there is no chat set {shown(options['set'])}")
        if options["run"] is not None and what not in OF_RUNS:
            raise InputProblem(f"--run: only for {' and '.join(OF_RUNS)}")
        if options["format"] == "csv" and what == "chats":
            raise InputProblem("--format: chats cannot be exported as csv; use jsonl")
        lines, columns = self._lines(what, chat_set, options["run"])
        texts = (
            csv_lines(lines, columns)
            if options["format"] == "csv"
            else (json_line(row) + "\n" for row in lines)
        )
        if path is None:
            for text in texts:
                self.stdout.write(text, ending="")
            return
        header = options["format"] == "csv"
        with replaced_file(path) as file:
            count = sum(bool(file.write(text)) for text in texts) - header
        self.answer({"exported": count, "file": str(path)}, f"Wrote {count:,} {what} to {path}")

    def _lines(
        self, what: str, chat_set: ChatSet, run_id: int | None
    ) -> tuple[Iterator[Line], Sequence[str]]:
        if what == "chats":
            return chat_lines(chat_set), ()
        if what in OF_RUNS:
            of_run, of_what = OF_RUNS[what]
            return chain.from_iterable(of_run(run) for run in self._runs(chat_set, run_id)), of_what
        lines, columns = LABELLING[what]
        return lines(chat_set, None), columns

    def _runs(self, chat_set: ChatSet, run_id: int | None) -> list[ExportRun]:
        if run_id is not None:
            runs = list(Run.objects.select_related("judge").filter(pk=run_id, chat_set=chat_set))
            if not runs:
                raise InputProblem(f"--run: the chat set {shown(chat_set.name)} has no run {run_id}")
            return export_runs(runs)
        newest, older = runs_to_export(chat_set)
        for run in older:
            self.note(
                f"excluded run {run.pk}: {run.judge.name} has a newer run of this set (choose it with --run)"
            )
        return newest
