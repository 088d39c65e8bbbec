"""Squashed migrations make new databases quickly, and the same as those that updated step by step."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

OWN_APPS = {"labeling", "evaluation", "alignment", "common"}
# The last release before the squashed migrations, migrated one by one as it was.
RELEASED = """
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
connection.may_create = True
executor = MigrationExecutor(connection)
executor.loader = MigrationLoader(connection, replace_migrations=False)
executor.migrate([
    ("common", "0002_handing_over"), ("labeling", "0017_data_imports"),
    ("evaluation", "0015_connected_endpoints"), ("alignment", "0023_workspace_archives"),
])
"""


def test_the_squashed_migrations_end_where_those_do_that_they_replace() -> None:
    squashed, one_by_one = MigrationLoader(None), MigrationLoader(None, replace_migrations=False)
    used = {app for app, name in squashed.graph.nodes if "_squashed_" in name}
    assert used == OWN_APPS
    steps = [node for node in one_by_one.graph.leaf_nodes() if "_squashed_" not in node[1]]
    assert squashed.project_state() == one_by_one.project_state(steps)


@pytest.mark.heavy
def test_an_earlier_database_updates_to_the_tables_of_a_new_one(tmp_path: Path) -> None:
    earlier, new = tmp_path / "earlier.sqlite3", tmp_path / "new.sqlite3"
    python(earlier, "-c", RELEASED)
    assert "[ ]  labeling.0018_production_chats" in python(earlier, "manage.py", "showmigrations", "--plan")
    for path in (earlier, new):
        python(path, "manage.py", "migrate", "--verbosity", "0")
        assert "[ ]" not in python(path, "manage.py", "showmigrations", "--plan")
    assert schema(earlier) == schema(new)


def python(database: Path, *arguments: str) -> str:
    """Run a program on a database."""
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{database}",
        "DJANGO_SETTINGS_MODULE": "lace_site.settings",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def schema(path: Path) -> dict[tuple[str, str], list[str]]:
    """Return the definition of each table, index and trigger; columns and constraints in any order."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {(kind, name): sorted(definitions(sql)) if kind == "table" else [sql] for kind, name, sql in rows}


def definitions(sql: str) -> Iterator[str]:
    """Divide the statement of a table at its outer commas."""
    inside, depth, begun = sql[sql.index("(") + 1 : sql.rindex(")")], 0, 0
    for match in re.finditer(r"[(),]", inside):
        depth += {"(": 1, ")": -1, ",": 0}[match[0]]
        if match[0] == "," and depth == 0:
            yield inside[begun : match.start()].strip()
            begun = match.end()
    yield inside[begun:].strip()
