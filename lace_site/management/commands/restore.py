"""Restores a backup into an empty place: no database file, or a PostgreSQL database without tables."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.commands import WorkbenchCommand
from lace_site.backup.services import backup_restore


class Command(WorkbenchCommand):
    """Check a backup, restore all of it or nothing, and print what it holds."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a backup made by manage.py backup")

    def handle(self, *args: Any, **options: Any) -> None:
        restored = backup_restore(Path(options["file"]))
        manifest = restored.manifest
        if restored.migrate:
            self.note("the backup is of an older version: run manage.py migrate before you start")
        self.answer(
            {**asdict(manifest), "leases_freed": restored.leases, "migrate": restored.migrate},
            f"restored {sum(manifest.rows.values()):,} rows of {manifest.created_at}; "
            "everybody signs in again, and runs continue",
        )
