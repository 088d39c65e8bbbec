"""Imports the verdicts of external judges."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import WorkbenchCommand
from evaluation.runs.services.verdicts import verdicts_import


class Command(WorkbenchCommand):
    help = "Import a JSON Lines file as one finished run per judge; the same file gives the same runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="verdicts as JSON Lines")
        parser.add_argument("--set", required=True, metavar="NAME", help="the chat set of the runs")

    def handle(self, *args: Any, **options: Any) -> None:
        result = verdicts_import(path=options["file"], set_name=options["set"])
        self.note_ignored(result.ignored)
        runs = [{"id": run.id, "judge": run.judge, "verdicts": run.verdicts} for run in result.runs]
        lines = [
            f"run {run.id}: {run.verdicts:,} verdicts by {run.judge}{'' if run.created else ' (known)'}"
            for run in result.runs
        ]
        self.answer({"runs": runs}, "\n".join(lines) or "no verdicts in the file")
