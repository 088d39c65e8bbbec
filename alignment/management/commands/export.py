"""Writes chats, labels, adjudications or verdicts of a set in the formats they can be imported from."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from alignment.selectors.exports import (
    ExportRun,
    Line,
    adjudication_lines,
    chat_lines,
    export_runs,
    label_lines,
    runs_to_export,
    verdict_lines,
)
from evaluation.models.runs import Run
from labeling.core.exporting import json_line, replaced_file
from labeling.core.problems import InputProblem, shown
from labeling.management.base import WorkbenchCommand
from labeling.models.chats import ChatSet
from labeling.selectors.chats import chat_set_named

LINES = {"chats": chat_lines, "labels": label_lines, "adjudications": adjudication_lines}


class Command(WorkbenchCommand):
    help = "Write a set's chats, labels, adjudications or verdicts as JSON Lines, to stdout or to a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=[*LINES, "verdicts"])
        parser.add_argument("--set", required=True, metavar="NAME")
        parser.add_argument(
            "--run", type=int, metavar="ID", help="verdicts of this run; default: each judge's newest"
        )
        parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="default: stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        what, path = options["what"], options["file"]
        chat_set = chat_set_named(options["set"])
        if chat_set is None:
            raise InputProblem(f"--set: no set {shown(options['set'])}")
        if options["run"] is not None and what != "verdicts":
            raise InputProblem("--run is for verdicts")
        lines = self._verdicts(chat_set, options["run"]) if what == "verdicts" else LINES[what](chat_set)
        if path is None:
            for line in lines:
                self.stdout.write(json_line(line))
            return
        count = 0
        with replaced_file(path) as file:
            for line in lines:
                file.write(json_line(line) + "\n")
                count += 1
        self.answer({"exported": count, "file": str(path)}, f"{count:,} {what} written to {path}")

    def _verdicts(self, chat_set: ChatSet, run_id: int | None) -> Iterator[Line]:
        return chain.from_iterable(verdict_lines(run) for run in self._runs(chat_set, run_id))

    def _runs(self, chat_set: ChatSet, run_id: int | None) -> list[ExportRun]:
        if run_id is not None:
            runs = list(Run.objects.select_related("judge").filter(pk=run_id, chat_set=chat_set))
            if not runs:
                raise InputProblem(f"--run: no run {run_id} of the set {shown(chat_set.name)}")
            return export_runs(runs)
        newest, older = runs_to_export(chat_set)
        for run in older:
            self.note(
                f"left out run {run.pk}: {run.judge.name} has a newer run of this set (name it with --run)"
            )
        return newest
