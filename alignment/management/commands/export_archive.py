"""Writes the whole workspace to one archive that another workspace takes in."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from alignment.archive.services import archive_write
from common.commands import WorkbenchCommand


class Command(WorkbenchCommand):
    """Write the whole workspace to an archive, while the workbench runs."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("-o", dest="file", type=Path, required=True, metavar="FILE", help="the archive")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        manifest = archive_write(path)
        self.answer(
            {"file": str(path), "bytes": path.stat().st_size, **manifest.as_json()},
            f"{path}: {manifest.rows:,} rows in {len(manifest.tables)} tables, {path.stat().st_size:,} bytes",
        )
