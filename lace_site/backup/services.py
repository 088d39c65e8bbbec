"""Makes a backup of the workspace, and restores one into an empty place."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader

from common.files import open_private
from common.problems import InputProblem
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leases import lease_end
from lace_site.backup.archive import (
    CERTIFICATE_KEY,
    Manifest,
    archive_extract,
    archive_manifest,
    archive_write,
    draft_folder,
)
from lace_site.backup.databases import current_copier
from lace_site.settings import SOFTWARE


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, the freed `leases` of dead workers, and whether `migrate` must run first."""

    manifest: Manifest
    leases: int
    migrate: bool


def backup_create(file: Path) -> Manifest:
    """Write a backup to a new file with mode 0600, while the workbench runs.

    It holds the state of one moment, without sessions, and the key that signs certificates. Neither
    SECRET_KEY nor any key of an endpoint is in it. Raises InputProblem and OutsideFailure.
    """
    if file.exists():
        raise InputProblem(f"{file} exists already: name a new file")
    copier, key = current_copier(), Path(settings.LACE_CERTIFICATE_KEY)
    with draft_folder(file.absolute(), prefix=".backup-") as folder:
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        content = copier.dump(folder / copier.member)
        members = {copier.member: folder / copier.member}
        if key.exists():
            members[CERTIFICATE_KEY] = key
        return archive_write(
            file,
            draft=folder / "draft",
            members=members,
            content=content,
            software=SOFTWARE,
            created_at=created_at,
            database=copier.kind,
        )


# Backups that are named by their time: `lace-20261128T031500Z.zip`, in the order of their names.
NAME, NAMES = "lace-%Y%m%dT%H%M%SZ.zip", "lace-[0-9]*T[0-9]*Z.zip"


def backup_name() -> str:
    """Return the name of a backup that is made now."""
    return datetime.now(UTC).strftime(NAME)


def backups_prune(folder: Path, *, keep: int) -> list[Path]:
    """Delete all but the newest `keep` backups that are named by their time; returns those deleted."""
    old = sorted(folder.glob(NAMES))[:-keep]
    for file in old:
        file.unlink()
    return old


def backup_restore(file: Path) -> Restored:
    """Restore a backup into an empty place, all of it or nothing; free the leases of the workers of then.

    Raises InputProblem for a damaged or foreign backup and for a place that is not empty, OutsideFailure for
    a disk or a database that fails.
    """
    copier, manifest = current_copier(), archive_manifest(file)
    if manifest.database != copier.kind or copier.member not in manifest.files:
        raise InputProblem(f"{file} is a backup of {manifest.database}, but DATABASE_URL names {copier.kind}")
    if newer := sorted({*manifest.migrations.items()} - {*MigrationLoader(None).disk_migrations}):
        raise InputProblem(f"{file} is of a newer version ({' '.join(newer[0])}): update the workbench first")
    if obstacle := copier.occupied():
        raise InputProblem(obstacle)
    with draft_folder(_beside(), prefix=".restore-") as folder:
        archive_extract(file, manifest, folder)
        made = CERTIFICATE_KEY in manifest.files and _key_restore(folder / CERTIFICATE_KEY)
        try:
            copier.load(folder / copier.member, manifest.content)
        except BaseException:
            if made:
                Path(settings.LACE_CERTIFICATE_KEY).unlink(missing_ok=True)
            raise
    behind = manifest.migrations != dict(MigrationLoader(None).graph.leaf_nodes())
    return Restored(manifest, leases=0 if behind else _leases_free(), migrate=behind)


def _beside() -> Path:
    """Return a path on the disk where the restored files belong."""
    if connection.vendor == "sqlite":
        return Path(connection.settings_dict["NAME"])
    return Path(settings.LACE_CERTIFICATE_KEY)


def _key_restore(restored: Path) -> bool:
    """Put the certificate key in its place; False where it lies there already.

    Raises InputProblem where another key lies there.
    """
    path, key = Path(settings.LACE_CERTIFICATE_KEY), restored.read_bytes()
    if path.exists() and path.read_bytes() != key:
        raise InputProblem(f"LACE_CERTIFICATE_KEY: {path} is another key: move it away")
    if path.exists():
        return False
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open_private(draft) as target:
            target.write(key)
            target.flush()
            os.fsync(target.fileno())
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


@transaction.atomic
def _leases_free() -> int:
    """Return the units that workers held when the backup was made; their runs go on at once."""
    leases = list(WorkerLease.objects.values_list("pk", flat=True))
    for lease in leases:
        lease_end(lease)
    return len(leases)
