"""Django's migrate: the one command that creates a SQLite file."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from common.garbage import few_collections


class Command(migrate.Command):
    """Create or update the tables; create a missing SQLite file unless --check or --plan is given."""

    def handle(self, *args: Any, **options: Any) -> None:
        database = connections[options["database"]]
        if database.vendor == "sqlite":
            database.may_create = not (options["check_unapplied"] or options["plan"])  # type: ignore[attr-defined]
        try:
            with few_collections():
                super().handle(*args, **options)
        finally:
            if database.vendor == "sqlite":
                database.may_create = False  # type: ignore[attr-defined]
