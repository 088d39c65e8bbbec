"""Names what is wrong with the database: a sentence for users, a code for programs."""

import sqlite3
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError

RETRY_SECONDS = 5  # for Retry-After


@dataclass(frozen=True, slots=True)
class DatabaseTrouble:
    """What is wrong. `passes` where waiting helps; `usage` where a command was given too early."""

    code: str
    sentence: str
    passes: bool = False
    usage: bool = False


_LOCKED = DatabaseTrouble(
    "database_busy", "The database is busy: another change holds it. Try again in a few seconds.", passes=True
)
_FULL = DatabaseTrouble(
    "database_full", "The disk of the database is full. Free some space on it, then try again.", passes=True
)
_UNREACHABLE = DatabaseTrouble(
    "database_unreachable", "The database does not answer. Check that it runs, then try again.", passes=True
)
_MISSING = DatabaseTrouble(
    "database_missing",
    "The database is missing, or it cannot be opened. Put it back, restore a backup, "
    "or create a new one with manage.py migrate.",
)
_DAMAGED = DatabaseTrouble(
    "database_damaged", "The database is damaged. Stop the workbench and restore a backup."
)
_READ_ONLY = DatabaseTrouble(
    "database_read_only", "The database is read-only. Make its file and its folder writable."
)
_DISK = DatabaseTrouble("database_disk", "The disk of the database fails to read or to write.")
_REFUSED = DatabaseTrouble(
    "database_refused", "The database refuses the user or the password in DATABASE_URL."
)
_NO_TABLES = DatabaseTrouble(
    "database_not_migrated",
    "The database has no tables yet, or older ones: run manage.py migrate",
    usage=True,
)

_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_CANTOPEN: _MISSING,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_IOERR: _DISK,
}
# By SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES = {
    "08": _UNREACHABLE,
    "25006": _READ_ONLY,
    "28": _REFUSED,
    "3D000": _MISSING,
    "40": _LOCKED,
    "42P01": _NO_TABLES,
    "42703": _NO_TABLES,
    "53": _UNREACHABLE,
    "53100": _FULL,
    "55P03": _LOCKED,
    "57": _UNREACHABLE,
    "57014": _LOCKED,
    "58": _DISK,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}


def database_trouble(error: BaseException | None) -> DatabaseTrouble | None:
    """Return what is wrong with the database; None where a query of ours is wrong, or for other errors."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    cause = error.__cause__ or error
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause)
    if hasattr(cause, "sqlstate"):
        return _of_postgres(cause.sqlstate, error)
    # Raised by Django itself: a connection that is closed already.
    return _UNREACHABLE if isinstance(error, InterfaceError) else None


def _of_sqlite(error: sqlite3.Error) -> DatabaseTrouble | None:
    if "no such table" in str(error) or "no such column" in str(error):
        return _NO_TABLES
    # The low byte is the error, the others its kind.
    return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def _of_postgres(state: str | None, error: Exception) -> DatabaseTrouble | None:
    if state:
        return _POSTGRES.get(state) or _POSTGRES.get(state[:2])
    # NB: the driver gives no SQLSTATE where connecting failed or the connection broke.
    message = str(error)
    if "database" in message and "does not exist" in message:
        return _MISSING
    if "authentication failed" in message:
        return _REFUSED
    return _UNREACHABLE if isinstance(error, OperationalError | InterfaceError) else None
