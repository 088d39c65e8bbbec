"""Django's SQLite backend for files that only `migrate` creates, and that may be replaced while we run."""

from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base, features


class DatabaseFeatures(features.DatabaseFeatures):
    """SQLite has had JSON built in since 3.38 (2022); asking would open the file at each system check."""

    supports_json_field = True


class DatabaseWrapper(base.DatabaseWrapper):
    """Opens existing files alone; with CONN_HEALTH_CHECKS notices that its file is gone or another one."""

    features_class = DatabaseFeatures
    may_create = False
    _opened: tuple[int, int] | None = None

    def get_connection_params(self) -> dict[str, Any]:
        """Return Django's parameters with SQLite's mode: rw, or rwc where the file may be created."""
        params: dict[str, Any] = super().get_connection_params()
        if not self.is_in_memory_db():
            mode = "rwc" if self.may_create else "rw"
            params["database"] = f"{Path(params['database']).absolute().as_uri()}?mode={mode}"
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, and remember which file was opened."""
        connection = super().get_new_connection(conn_params)
        self._opened = self._file()
        return connection

    def is_usable(self) -> bool:
        """NB: what is written through an open connection to a deleted file is lost without an error."""
        return self._opened == self._file() and super().is_usable()

    def _file(self) -> tuple[int, int] | None:
        """Return device and inode of the file; None without one."""
        if self.is_in_memory_db():
            return None
        try:
            status = Path(self.settings_dict["NAME"]).stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
