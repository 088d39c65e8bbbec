"""Takes the archive of another workspace into this empty one."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from alignment.archive.services import archive_take
from common.commands import WorkbenchCommand


class Command(WorkbenchCommand):
    """Take the archive of another workspace into this empty one, all of it or nothing."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="written by export_archive or on a page")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        taken = archive_take(source=path, name=path.name, by=None)
        self.answer(
            {"rows": taken.rows, "accounts": taken.accounts, "joined": taken.joined},
            f"{path}: {taken.rows:,} rows; {taken.accounts:,} accounts, inactive until a lead activates them"
            + (f", {taken.joined:,} joined to accounts of the same name" if taken.joined else ""),
        )
