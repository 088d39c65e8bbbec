"""Import adjudications."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from labeling.adjudication.services import adjudications_import


class Command(ImportCommand):
    help = "Add the adjudications of a JSON Lines file; a different decision replaces the current one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="decisions as JSON Lines")
        parser.add_argument(
            "--replace-account-decisions",
            action="store_true",
            help="let lines replace what leads decided in the workbench; the audit log keeps both",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        result = adjudications_import(
            path=options["file"], replace_accounts=options["replace_account_decisions"]
        )
        self.answer_import(result, "adjudications")
