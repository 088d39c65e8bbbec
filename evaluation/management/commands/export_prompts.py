"""Writes the champion prompts to a folder."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import WorkbenchCommand
from evaluation.prompts.services.prompt_files import prompts_export


class Command(WorkbenchCommand):
    help = "Write every champion prompt to KEY.md in a folder, and its examples to KEY.examples.jsonl."
    on_stop = "the files written so far stay"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="where to write; unchanged files are not touched")

    def handle(self, *args: Any, **options: Any) -> None:
        result = prompts_export(options["folder"])
        noun = "file" if result.changed == 1 else "files"
        self.answer(
            {"prompts": result.prompts, "changed": result.changed},
            f"{result.prompts} prompts in {options['folder']}, {result.changed} {noun} changed",
        )
