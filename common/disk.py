"""Whether the disk of the database has room for writes."""

import shutil
from pathlib import Path

from django.db import connection

# SQLite writes each change to its log first: with less than this, writes begin to fail.
LEAST_FREE = 4 * 2**20


def database_folder() -> Path | None:
    """Return the folder of the SQLite file; None for a database server, whose disk is its own."""
    if connection.vendor != "sqlite":
        return None
    return Path(str(connection.settings_dict["NAME"])).parent


def disk_trouble(folder: Path | None) -> str:
    """Return why nothing can be written in a folder, or ""; no folder is no trouble."""
    if folder is None:
        return ""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder}: {(error.strerror or 'cannot be read').lower()}"
    return "disk full" if free < LEAST_FREE else ""


def database_bytes() -> int:
    """Return the size of the database; one query, none for SQLite."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
    files = (Path(f"{connection.settings_dict['NAME']}{end}") for end in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
