"""Adds human labels."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from labeling.management.base import WorkbenchCommand
from labeling.services.labels import labels_import


class Command(WorkbenchCommand):
    help = "Add the labels of a JSON Lines file; a different answer in a later file makes a revision."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer_import(labels_import(path=options["file"]), "labels")
