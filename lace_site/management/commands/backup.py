"""Backs up the database and the certificate key into one file, while the workbench runs."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.commands import WorkbenchCommand
from lace_site.backup.archive import CERTIFICATE_KEY
from lace_site.backup.services import backup_create


class Command(WorkbenchCommand):
    """Write a backup and print what it holds."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the new backup; an existing file is not replaced")

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(options["file"])
        manifest = backup_create(file)
        key = "with" if CERTIFICATE_KEY in manifest.files else "without"
        self.answer(
            {"file": str(file), "bytes": file.stat().st_size, **asdict(manifest)},
            f"{file}: {sum(manifest.rows.values()):,} rows in {len(manifest.rows)} tables, {key} the "
            f"certificate key, {file.stat().st_size:,} bytes. Keep SECRET_KEY and endpoint keys elsewhere.",
        )
