"""Archives: asked for and deleted by leads, and taken in by an empty workspace, all of it or nothing."""

import base64
import binascii
import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any

from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.core.management.color import no_style
from django.db import DataError, IntegrityError, connection, models, transaction
from django.db.models import Max
from django.utils.dateparse import parse_datetime

from alignment.archive.core import ArchiveReader, Manifest, Row, archive_opened
from alignment.archive.queries import (
    TABLES,
    Table,
    archive_dump,
    groups_by_name,
    migrations_here,
    newest_archive,
    obstacle,
    own_chats_to_label,
)
from alignment.archive.worker import ARCHIVES, archive_path
from alignment.models.archives import WorkspaceArchive
from common.files import open_private
from common.problems import InputProblem, OutsideFailure, shown
from common.sql import insert_rows
from evaluation.models.judges import JudgeProfile
from labeling.models.chats import Topic
from labeling.models.people import Rater, User, Workspace
from labeling.people.services.audit import audit, operator_name

MOST_ACCOUNTS = 100_000  # their ids are held in memory
_WHOLE = {"labeling.User", "auth.Group", "labeling.User_groups"}  # stored by their names, not their ids
Decode = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a workspace took in; `joined` accounts had a namesake here."""

    rows: int
    accounts: int
    joined: int


# ---------- out ----------


def archive_write(path: Path) -> Manifest:
    """Write an archive to a file that replaces `path` on success, with mode 0600.

    Raises InputProblem for a path that cannot be written, OutsideFailure for a disk that fails.
    """
    if path.is_dir():
        raise InputProblem(f"{path}: is a folder, not a file")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        target = open_private(draft)
    except OSError as error:
        raise InputProblem(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with target:
            manifest = archive_dump(target, tick=lambda done, total: None)
        draft.replace(path)
    except OSError as error:
        raise OutsideFailure(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    with transaction.atomic():
        audit(
            actor=None,
            verb="archive exported",
            obj=Workspace.current(),
            file=path.name,
            rows=manifest.rows,
            operator=operator_name(),
        )
    return manifest


@transaction.atomic
def archive_ask(*, by: User) -> WorkspaceArchive:
    """Ask a worker for an archive; while one is in work, return that.

    Raises InputProblem for a lead who still has to label chats: it holds the others' answers.
    """
    archive_open_to(by)
    newest = newest_archive()
    if newest is not None and newest.in_work:
        return newest
    row = WorkspaceArchive.objects.create(by=by)
    audit(actor=by, verb="archive requested", obj=row)
    transaction.on_commit(partial(ARCHIVES.enqueue, row.pk))
    return row


def archive_open_to(user: User) -> None:
    """Raise InputProblem for a lead who must not read all answers yet."""
    if chats := own_chats_to_label(user):
        raise InputProblem(
            f"The archive holds other raters’ labels, and you still have {chats:,} "
            f"{'chat' if chats == 1 else 'chats'} to label. Label or skip them first, or ask another lead."
        )


@transaction.atomic
def archive_delete(*, archive: WorkspaceArchive, by: User) -> None:
    """Delete an archive and its file. Raises InputProblem while it is being made."""
    if archive.state == WorkspaceArchive.State.WORKING:
        raise InputProblem("The archive is being made. Delete it when it is ready.")
    audit(actor=by, verb="archive deleted", obj=archive)
    path = archive_path(archive.pk)
    archive.delete()
    transaction.on_commit(partial(path.unlink, missing_ok=True))


@transaction.atomic
def archive_downloaded(*, archive: WorkspaceArchive, by: User) -> None:
    """Log a download."""
    audit(actor=by, verb="archive downloaded", obj=archive)


# ---------- in ----------


def archive_take(*, source: Path | IO[bytes], name: str, by: User | None) -> Taken:
    """Take an archive into this empty workspace, with equal reports.

    Rows keep their ids; accounts come inactive, without a password, and one with the name of an account of
    here joins it. Runs in work come paused.

    Raises InputProblem for a workspace that is not empty, and for an archive that is damaged, foreign, of
    another version, or does not hold together. Then nothing is written.
    """
    with archive_opened(source, name) as archive:
        _check_version(archive)
        _check_empty()
        archive.check()
        try:
            with transaction.atomic():
                Workspace.current()
                list(Workspace.objects.select_for_update())
                _check_empty()
                taken = _Import(archive).take()
                audit(
                    actor=by,
                    verb="archive imported",
                    obj=Workspace.current(),
                    file=name,
                    made_at=archive.manifest.created_at,
                    rows=taken.rows,
                    accounts=taken.accounts,
                    operator="" if by else operator_name(),
                )
        except (IntegrityError, DataError) as error:
            raise archive.refuse("its rows do not fit together; nothing was written") from error
    return taken


def _check_empty() -> None:
    if reason := obstacle():
        raise InputProblem(
            f"This workspace is not empty: {reason}. Take the archive into an empty workspace."
        )


def _check_version(archive: ArchiveReader) -> None:
    manifest, here = archive.manifest, migrations_here()
    for app, newest in sorted(manifest.migrations.items()):
        if here.get(app, "") < newest:
            raise archive.refuse(f"is of a newer version ({app} {newest}): update this workbench first")
    if dict(manifest.migrations) != here:
        older = next(app for app in sorted(here) if manifest.migrations.get(app) != here[app])
        raise archive.refuse(
            f"is of an older version ({older} {manifest.migrations.get(older, 'missing')}): "
            "update the workbench that it comes from, and make the archive again"
        )
    _check_tables(archive, manifest)


def _check_tables(archive: ArchiveReader, manifest: Manifest) -> None:
    known = {table.name: table for table in TABLES}
    if unknown := sorted(manifest.tables.keys() - known):
        raise archive.refuse(f"holds the unknown table {shown(unknown[0])}")
    if missing := sorted(known.keys() - manifest.tables.keys()):
        raise archive.refuse(f"lacks the table {missing[0]}")
    for name, entry in manifest.tables.items():
        columns = set(known[name].fields)
        if other := sorted(columns.symmetric_difference(entry.columns)):
            what = "lacks the column" if other[0] in columns else "has the unknown column"
            raise archive.refuse(f"{name} {what} {shown(other[0])}")


@dataclass
class _Import:
    """One archive on its way into the database, inside a transaction."""

    archive: ArchiveReader
    # Ids in the archive → ids here, by model.
    ids: dict[type[models.Model], dict[int, int]] = field(default_factory=dict)
    created: set[int] = field(default_factory=set)
    joined: int = 0

    def take(self) -> Taken:
        """Store all tables and return what was taken in."""
        for model in (Rater, Topic, JudgeProfile, Workspace):
            model._base_manager.all().delete()
        accounts = self._accounts()
        self._groups()
        self._roles()
        for table in TABLES:
            if table.name not in _WHOLE:
                insert_rows(table.model, list(table.fields), self._decoded(table))
        connection.check_constraints()
        statements = connection.ops.sequence_reset_sql(no_style(), [table.model for table in TABLES])
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        return Taken(self.archive.manifest.rows, accounts, self.joined)

    def _accounts(self) -> int:
        """Create the accounts, inactive and without a password, or join them to their namesakes."""
        namesakes = dict(User.objects.values_list("username", "pk"))
        free = count((User.objects.aggregate(last=Max("pk"))["last"] or 0) + 1)
        ids: dict[int, int] = {}
        new: list[User] = []
        for _, row in self._values("labeling.User"):
            if len(ids) >= MOST_ACCOUNTS:
                raise self.archive.refuse(f"holds more than {MOST_ACCOUNTS:,} accounts")
            old = row.pop("id")
            if old in ids:
                raise self.archive.refuse("holds an account twice")
            if (here := namesakes.get(row["username"])) is not None:
                ids[old], self.joined = here, self.joined + 1
                continue
            ids[old] = next(free)
            self.created.add(ids[old])
            new.append(User(pk=ids[old], **row, password=make_password(None), is_active=False))
        User.objects.bulk_create(new, batch_size=500)
        self.ids[User] = ids
        return len(ids)

    def _groups(self) -> None:
        """Find the groups by their names; create those that are missing here, without rights."""
        group = next(table for table in TABLES if table.name == "auth.Group").model
        here, ids = groups_by_name(), {}
        for _, row in self._values("auth.Group"):
            if row["name"] not in here:
                here[row["name"]] = group._base_manager.create(name=row["name"]).pk
            ids[row["id"]] = here[row["name"]]
        self.ids[group] = ids

    def _roles(self) -> None:
        """Give the new accounts their groups; accounts of here keep theirs."""
        rows = (row for _, row in self._values("labeling.User_groups") if row["user_id"] in self.created)
        names = ["user_id", "group_id"]
        insert_rows(User.groups.through, names, ([row[name] for name in names] for row in rows))

    def _decoded(self, table: Table) -> Iterator[list[Any]]:
        names = list(table.fields)
        for _, row in self._values(table.name):
            yield [row[name] for name in names]

    def _values(self, name: str) -> Iterator[tuple[int, Row]]:
        """Yield line numbers and rows of a table, as Python values. Raises InputProblem with the place."""
        table = next(table for table in TABLES if table.name == name)
        decoders = {column: self._decoder(field) for column, field in table.fields.items()}
        for number, row in enumerate(self.archive.rows(name), 1):
            try:
                for column, decode in decoders.items():
                    row[column] = decode(row[column])
            except (ValueError, ValidationError, OverflowError, ArithmeticError, KeyError, TypeError):
                place = f"{name} line {number}, {column}"
                raise self.archive.refuse(
                    f"{place}: not a value of this column: {shown(row[column])}"
                ) from None
            yield number, row

    def _decoder(self, field: "models.Field[Any, Any]") -> Decode:
        """Return what reads the values of a column, and raises ValueError for others."""
        if isinstance(field, models.ForeignKey):
            ids = self.ids.get(field.related_model)
            inner = self._decoder(field.target_field)
            read = ids.__getitem__ if ids is not None else inner
        else:
            read = _reader(field)
        if not field.null:
            return _not_none(read)
        return lambda value: None if value is None else read(value)


def _not_none(read: Decode) -> Decode:
    def decode(value: Any) -> Any:
        if value is None:
            raise ValueError
        return read(value)

    return decode


def _reader(field: "models.Field[Any, Any]") -> Decode:
    """Return what turns a JSON value into that of a column."""
    readers: Mapping[type[models.Field[Any, Any]], Decode] = {
        models.JSONField: lambda value: value,
        models.BooleanField: partial(_typed, kinds=(bool,)),
        models.DateTimeField: _moment,
        models.DateField: lambda value: date.fromisoformat(_typed(value, kinds=(str,))),
        models.TimeField: lambda value: time.fromisoformat(_typed(value, kinds=(str,))),
        models.UUIDField: lambda value: uuid.UUID(_typed(value, kinds=(str,))),
        models.DecimalField: lambda value: field.clean(_typed(value, kinds=(str,)), None),
        models.BinaryField: _bytes,
        models.FloatField: _number,
        models.IntegerField: partial(_whole, limits=_limits(field)),
        models.AutoField: partial(_whole, limits=(1, 2**63 - 1)),
        models.CharField: partial(_text, limit=field.max_length, known=_choices(field)),
        models.TextField: partial(_text, limit=None, known=frozenset()),
    }
    for kind, read in readers.items():
        if isinstance(field, kind):
            return read
    raise TypeError(f"{field}: archives know no {type(field).__name__}")


def _typed(value: Any, *, kinds: tuple[type, ...]) -> Any:
    if not isinstance(value, kinds):
        raise ValueError
    return value


def _whole(value: Any, *, limits: tuple[int | None, int | None]) -> int:
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    if (low is not None and value < low) or (high is not None and value > high):
        raise ValueError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _limits(field: "models.Field[Any, Any]") -> tuple[int | None, int | None]:
    """Return the range that the database stores in a column of whole numbers."""
    if not isinstance(field, models.IntegerField):
        return None, None
    return connection.ops.integer_field_range(field.get_internal_type())


def _choices(field: "models.Field[Any, Any]") -> frozenset[Any]:
    return frozenset(value for value, _ in field.flatchoices)


def _text(value: Any, *, limit: int | None, known: frozenset[Any]) -> str:
    text: str = _typed(value, kinds=(str,))
    if "\0" in text or (limit is not None and len(text) > limit) or (known and text and text not in known):
        raise ValueError
    text.encode()  # half a surrogate pair is no text
    return text


def _moment(value: Any) -> datetime:
    moment = parse_datetime(_typed(value, kinds=(str,)))
    if moment is None or moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_typed(value, kinds=(str,)), validate=True)
    except binascii.Error:
        raise ValueError from None
