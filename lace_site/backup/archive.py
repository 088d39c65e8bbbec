"""The archive of a backup: a ZIP file with a manifest of hashes and counts. Nothing is taken on trust."""

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from common.files import DAMAGED_ZIP, open_private
from common.problems import InputProblem, OutsideFailure

FORMAT = 1
MANIFEST, CERTIFICATE_KEY = "manifest.json", "certificate_key.pem"
LARGEST_MANIFEST = 1_000_000  # bytes
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a database: rows by table, and the newest migration by app."""

    rows: dict[str, int]
    migrations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds. `files`: SHA-256 and bytes by name."""

    format: int
    software: dict[str, str]
    created_at: str
    database: str
    rows: dict[str, int]
    migrations: dict[str, str]
    files: dict[str, dict[str, Any]]

    @property
    def content(self) -> Content:
        """Return what the database must hold once it is restored."""
        return Content(self.rows, self.migrations)


@contextmanager
def draft_folder(beside: Path, *, prefix: str) -> Iterator[Path]:
    """Yield a private folder on the same disk. Raises OutsideFailure for a disk that fails."""
    try:
        with tempfile.TemporaryDirectory(dir=beside.parent, prefix=prefix) as folder:
            yield Path(folder)
    except OSError as error:
        raise OutsideFailure(f"{error.filename or beside}: {error.strerror}") from error


def archive_write(
    file: Path, *, draft: Path, members: Mapping[str, Path], content: Content, **given: Any
) -> Manifest:
    """Write the archive to `draft` and rename it to `file` once it is on the disk."""
    with open_private(draft) as target:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            files = {name: _add(archive, name, path) for name, path in members.items()}
            manifest = Manifest(
                format=FORMAT, rows=content.rows, migrations=content.migrations, files=files, **given
            )
            archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1, ensure_ascii=False))
        target.flush()
        os.fsync(target.fileno())
    draft.rename(file)
    return manifest


def archive_manifest(file: Path) -> Manifest:
    """Return the manifest; raises InputProblem for a file that is no readable backup."""
    with _opened(file) as archive:
        if archive.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
            raise zipfile.BadZipFile
        document = archive.read(MANIFEST)
    try:
        manifest = Manifest(**json.loads(document))
        known = manifest.format == FORMAT and _well_formed(manifest)
    except (ValueError, TypeError, AttributeError):
        known = False
    if not known:
        raise InputProblem(f"{file}: the manifest is not one of this version's backups")
    return manifest


def _well_formed(manifest: Manifest) -> bool:
    entries = manifest.files.values()
    return (
        all(Path(name).name == name for name in manifest.files)
        and all(isinstance(one["sha256"], str) and isinstance(one["bytes"], int) for one in entries)
        and all(isinstance(count, int) for count in manifest.rows.values())
        and all(isinstance(name, str) for name in manifest.migrations.values())
    )


def archive_extract(file: Path, manifest: Manifest, folder: Path) -> None:
    """Extract the files of a manifest to a folder. Raises InputProblem where a hash differs."""
    with _opened(file) as archive:
        for name, entry in manifest.files.items():
            if _extract(archive, name, folder / name, most=entry["bytes"]) != entry["sha256"]:
                raise InputProblem(
                    f"{file}: {name} differs from its hash: the backup is damaged, use another"
                )


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(file)
    except OSError as error:
        raise InputProblem(f"{file}: {error.strerror}") from None
    except DAMAGED_ZIP:
        raise InputProblem(f"{file} is no backup, or a damaged one: use another") from None
    try:
        with archive:
            yield archive
    except DAMAGED_ZIP:
        raise InputProblem(f"{file} is damaged: use another backup") from None


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    digest, size = sha256(), 0
    with path.open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            size += target.write(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _extract(archive: zipfile.ZipFile, name: str, path: Path, *, most: int) -> str:
    """Write one file and return its SHA-256; stop where it is larger than its manifest says."""
    digest, size = sha256(), 0
    with archive.open(name) as source, open_private(path) as target:
        while size <= most and (chunk := source.read(_CHUNK)):
            digest.update(chunk)
            size += target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()
