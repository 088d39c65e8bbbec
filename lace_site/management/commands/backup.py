"""Backs up the database and the certificate key into one file, while the workbench runs."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.commands import WorkbenchCommand
from common.problems import InputProblem
from lace_site.backup.archive import CERTIFICATE_KEY
from lace_site.backup.services import backup_create, backup_name, backups_prune


class Command(WorkbenchCommand):
    """Write a backup and print what it holds."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE",
            help="the new backup, or a folder for one named by its time; an existing file is not replaced",
        )
        parser.add_argument(
            "--keep", type=int, metavar="N", help="then delete all but the newest N backups of the folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        place, keep = Path(options["file"]), options["keep"]
        if keep is not None and (keep < 1 or not place.is_dir()):
            raise InputProblem("--keep takes a whole number above 0 and needs a folder")
        file = place / backup_name() if place.is_dir() else place
        manifest = backup_create(file)
        for old in backups_prune(place, keep=keep) if keep else ():
            self.note(f"deleted {old}")
        key = "with" if CERTIFICATE_KEY in manifest.files else "without"
        self.answer(
            {"file": str(file), "bytes": file.stat().st_size, **asdict(manifest)},
            f"{file}: {sum(manifest.rows.values()):,} rows in {len(manifest.rows)} tables, {key} the "
            f"certificate key, {file.stat().st_size:,} bytes. Keep SECRET_KEY and endpoint keys elsewhere.",
        )
