"""Creates or extends a rubric."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from evaluation.knowledge.services import criterion_articles_set
from labeling.rubric.services.rubric import rubric_import


class Command(ImportCommand):
    help = (
        "Create or extend a rubric from a JSON file. A changed text becomes a new version of its criterion."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the rubric as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        # labeling stores the rubric, evaluation its articles.
        result = rubric_import(path=options["file"], articles_set=criterion_articles_set)
        self.answer_import(result, "criteria")
