"""Creates or extends the rubric."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.services.knowledge import criterion_articles_set
from labeling.management.base import WorkbenchCommand
from labeling.models.rubric import Criterion
from labeling.services.rubric import rubric_import


def articles_set(criterion: Criterion, keys: Sequence[str]) -> bool:
    """The rubric is labeling's, the articles that it names are evaluation's."""
    return criterion_articles_set(criterion=criterion, keys=keys)


class Command(WorkbenchCommand):
    help = "Create or extend a rubric from a JSON file; a changed text is a new version of its criterion."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        self.answer_import(rubric_import(path=options["file"], articles_set=articles_set), "criteria")
