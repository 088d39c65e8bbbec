"""Archives of the workspace: made, changed by a hostile hand, and a workspace emptied for them."""

import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.apps import apps
from django.utils import timezone

from alignment.archive.core import MANIFEST, member_of
from alignment.archive.worker import archive_path
from alignment.models.archives import WorkspaceArchive
from evaluation.judges.services.profiles import profiles_ensure
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.people.services.roles import roles_ensure
from tests.factories.triggers import without_triggers

Document = dict[str, Any]
OTHERS = {"auth.Permission", "contenttypes.ContentType"}


def emptied() -> None:
    """Leave what `migrate` leaves: no chat, no account, no label."""
    with without_triggers() as cursor:
        for model in apps.get_models(include_auto_created=True):
            if model._meta.label not in OTHERS and model._meta.managed:
                cursor.execute(f'DELETE FROM "{model._meta.db_table}"')  # noqa: S608  a name of ours
    Topic.objects.create(key=Topic.UNKNOWN, name="Unknown")
    roles_ensure()
    profiles_ensure()


def stored_archive(*, by: User) -> int:
    """The id of an archive that can be downloaded."""
    row = WorkspaceArchive.objects.create(by=by, state="done", total=1, size=7, finished_at=timezone.now())
    archive_path(row.pk).write_bytes(b"archive")
    return row.pk


def rows_of(archive: Path, table: str) -> list[Document]:
    """The rows of a table in an archive."""
    with zipfile.ZipFile(archive) as opened:
        return [json.loads(line) for line in opened.read(member_of(table)).splitlines()]


def manifest_in(archive: Path) -> Document:
    """The manifest of an archive."""
    with zipfile.ZipFile(archive) as opened:
        document: Document = json.loads(opened.read(MANIFEST))
    return document


def changed(
    archive: Path,
    *,
    manifest: Callable[[Document], Any] = lambda document: None,
    tables: dict[str, Callable[[list[Document]], Any]] | None = None,
    raw: dict[str, bytes] | None = None,
    extra: dict[str, bytes] | None = None,
) -> Path:
    """A copy with another manifest, other rows (their sums are right) or lines, or further files."""
    target = archive.with_name(f"changed-{len(list(archive.parent.iterdir()))}.zip")
    document = manifest_in(archive)
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in document["tables"]:
            content = source.read(member_of(name))
            change, given = (tables or {}).get(name), (raw or {}).get(name)
            if change:
                rows = [json.loads(line) for line in content.splitlines()]
                change(rows)
                given = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
            if given is not None:
                content = given
                document["tables"][name] |= {
                    "rows": content.count(b"\n"),
                    "bytes": len(content),
                    "sha256": sha256(content).hexdigest(),
                }
            copy.writestr(member_of(name), content)
        manifest(document)
        for name, content in (extra or {}).items():
            copy.writestr(name, content)
        copy.writestr(MANIFEST, json.dumps(document))
    return target
