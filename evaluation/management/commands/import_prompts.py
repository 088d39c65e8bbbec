"""Adds prompt versions from the files of a folder."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from evaluation.prompts.services.prompt_files import prompts_import


class Command(ImportCommand):
    help = "Add a version for every KEY.md in a folder with new text or examples; none is promoted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="files as export_prompts writes them")
        parser.add_argument("--reason", default="", help="why these versions")

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer_import(prompts_import(options["folder"], reason=options["reason"]), "prompts")
