"""Adds knowledge articles."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from evaluation.knowledge.services import knowledge_import


class Command(ImportCommand):
    help = "Import the Markdown files of a folder as knowledge articles; a changed text is a new version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="Markdown files, one an article")

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer_import(knowledge_import(folder=options["folder"]), "articles")
