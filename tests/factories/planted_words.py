"""A word in every column that holds texts of a chat or of a person, and where it is found."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, models

from alignment.archive.worker import archive_path
from alignment.models.archives import WorkspaceArchive
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.people import User
from labeling.people.services.audit_texts import log_unlocked
from tests.factories.archives import stored_archive

WORD = "zqxquetzalxqz"  # one word for the search index


def is_text(field: Any) -> bool:
    """Whether a column can hold what somebody wrote."""
    kinds = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
    return isinstance(field, kinds) and not field.choices


def plant(rows: Mapping[str, Any], *, kept: Collection[str], documents: Mapping[str, Any]) -> set[str]:
    """Write the word into every text of these rows; return the columns.

    `kept` are columns that hold no such text; `documents` what JSON columns hold instead of the word.
    """
    planted = set()
    for table, query in rows.items():
        for field in query.model._meta.concrete_fields:
            name = f"{table.split('.')[1]}.{field.name}"
            if is_text(field) and name not in kept:
                value = documents.get(name, WORD[: getattr(field, "max_length", None)])
                ids = list(query.values_list("pk", flat=True))
                with log_unlocked():
                    models.QuerySet(query.model).filter(pk__in=ids).update(**{field.name: value})
                planted.add(name)
    return planted


def stored_file(*, by: User, of: models.Model) -> DataImport:
    """An import that brought this row; its file says the word."""
    row = DataImport.objects.create(
        kind="chats", file_name="chats.csv", size=1, sha256="0" * 64, by=by, state=DataImport.State.DONE
    )
    row.path.parent.mkdir(parents=True, exist_ok=True)
    row.path.write_text(WORD)
    ImportedRow.objects.create(data_import=row, model=of._meta.label_lower, object_id=of.pk)
    return row


def filled_archive(*, by: User) -> WorkspaceArchive:
    """An archive whose file says the word."""
    row = WorkspaceArchive.objects.get(pk=stored_archive(by=by))
    archive_path(row.pk).write_text(WORD)
    return row


def files_again() -> None:
    """Leave the two files of now: only tables are restored after a test, and other tests left their own."""
    for path in _files(WORD):
        Path(path).unlink()
    row = DataImport.objects.get(file_name="chats.csv", sha256="0" * 64)
    row.path.parent.mkdir(parents=True, exist_ok=True)
    row.path.write_text(WORD)
    archive_path(WorkspaceArchive.objects.latest("pk").pk).write_text(WORD)


def places_with(word: str) -> set[str]:
    """The tables and files in which the word is found: whole rows of every table, and all data files."""
    return {*_tables(word), *_files(word)}


def _tables(word: str) -> Iterator[str]:
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608  a name of the database
            rows = cursor.fetchall()
        if any(word in _text(value) for row in rows for value in row):
            yield table


def _text(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace").casefold()
    return str(value).casefold()


def _files(word: str) -> Iterator[str]:
    folders = [Path(settings.LACE_ARCHIVE_DIR), Path(settings.IMPORT_DIR)]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    for path in paths:
        if word.encode() in path.read_bytes():
            yield str(path)


def database_files_with(word: str) -> list[str]:
    """The files of an SQLite database in which the bytes are found, also in pages that are free."""
    name = str(connection.settings_dict["NAME"])
    found = [Path(f"{name}{end}") for end in ("", "-wal", "-journal")]
    return [path.name for path in found if path.exists() and word.encode() in path.read_bytes()]
