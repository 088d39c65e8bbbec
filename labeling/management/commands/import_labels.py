"""Import human labels."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from common.commands import ImportCommand
from common.problems import InputProblem
from labeling.transfer.services.importers import TOOLS, tool_labels_import
from labeling.transfer.services.labels import labels_import


class Command(ImportCommand):
    help = "Add the labels of a JSON Lines file or a tool's export; a different answer becomes a revision."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="labels as JSON Lines, or another tool's export")
        parser.add_argument("--format", choices=list(TOOLS), help="exporting tool; requires --map")
        parser.add_argument(
            "--map",
            type=Path,
            metavar="FILE",
            help="a JSON file that maps questions to criteria, choices to answers, and users to raters",
        )

        parser.add_argument(
            "--replace-account-labels",
            action="store_true",
            help="let lines change what accounts answered; the audit log keeps both answers",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tool, mapping = options["format"], options["map"]
        if (tool is None) != (mapping is None):
            raise InputProblem("--format and --map go together")
        path, replace = options["file"], options["replace_account_labels"]
        if tool is None:
            result = labels_import(path=path, replace_accounts=replace)
        else:
            result = tool_labels_import(path=path, tool=tool, mapping_path=mapping, replace_accounts=replace)
        self.answer_import(result, "labels")
