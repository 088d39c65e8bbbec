"""Import adjudications."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import WorkbenchCommand
from labeling.adjudication.services import adjudications_import


class Command(WorkbenchCommand):
    help = "Add the adjudications of a JSON Lines file; a different decision replaces the current one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer_import(adjudications_import(path=options["file"]), "adjudications")
