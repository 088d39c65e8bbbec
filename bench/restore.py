"""A backup taken under load, restored elsewhere on PostgreSQL: rows, hashes, certificates, runs.

While a crowd works, `backup_create` copies the database. The hash of every table is taken in the transaction
whose snapshot the copy has, and again right after the copy is loaded by another server, with a data folder of
its own. Then the restored site is served: certificates verify, and runs that were in work end.
`LACE_RESTORE_SECONDS=20` makes it shorter.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench import Figure
from bench._child import in_child
from bench._office import ENDPOINT, SET, Office, office, runs_end
from bench._site import Site
from tests.with_postgres import postgres

SECONDS = float(os.environ.get("LACE_RESTORE_SECONDS", "60"))
BACKUPS = 3
COUNTS = {"rater": 24, "author": 4, "lead": 2, "program": 8}
THINK, ARRIVE, CHATS = 1.0, 2.0, 5_000
LONG_RUN, BEGUN = 60, 2.0  # chats; seconds until a worker has begun
ENDS_WITHIN = 300.0


def figures() -> Iterator[Figure]:
    """Each of three backups, of different moments; the last one is served."""
    with office(counts=COUNTS, chats=CHATS, demo=0, latency=3.0) as place:
        crowd = place.crowd(counts=COUNTS, think=THINK, rate=ARRIVE)
        time.sleep(sum(COUNTS.values()) / ARRIVE + 10)
        backups = []
        for number in range(BACKUPS):
            time.sleep(SECONDS / BACKUPS)
            # A run that is in work at the moment of the backup.
            run = {"set": SET, "engine": "direct", "endpoint": ENDPOINT, "limit": LONG_RUN}
            place.site.ask("POST", "/api/runs/", run | {"replicate": number})
            time.sleep(BEGUN)
            file = place.folder / f"{number}.zip"
            backups.append(in_child("restore", "backed_up", {"file": str(file)}, place.site.environment))
            crowd.must_work()
        found = crowd.end(stop=True, timeout=120)
        yield Figure("requests refused meanwhile", len(found.errors), 0, "")
        sizes = [backup["labels"] for backup in backups]
        yield Figure(
            "labels saved between the first and the last backup", sizes[-1] - sizes[0], 1, "", floor=True
        )
        for number, backup in enumerate(backups, 1):
            with elsewhere(place, number) as there:
                yield from compared(number, backup, there)
                if number == BACKUPS:
                    yield from resumed(there)


def compared(number: int, backup: dict[str, Any], there: Site) -> Iterator[Figure]:
    """Restore a backup, and compare."""
    arguments = {"file": backup["file"]}
    restored = in_child("restore", "restored", arguments, there.environment)
    tables = backup["tables"].keys() | restored["tables"].keys()
    differ = [name for name in sorted(tables) if backup["tables"].get(name) != restored["tables"].get(name)]
    if differ:
        print(f"differ: {', '.join(differ)}", file=sys.stderr)
    rows = sum(count for count, _ in backup["tables"].values())
    title = f"backup {number} of {rows:,} rows in {len(backup['tables'])} tables"
    yield Figure(f"{title}: tables that differ", len(differ), 0, "")
    yield Figure(f"backup {number}, runs in work", restored["working"], 1, "", floor=True)
    yield Figure(f"backup {number}, certificates that do not verify", restored["refused"], 0, "")
    yield Figure(f"backup {number}, certificates that verify", restored["genuine"], 1, "", floor=True)
    print(
        f"backup {number}: {backup['seconds']:.1f} s, {Path(backup['file']).stat().st_size:,} bytes",
        file=sys.stderr,
        flush=True,
    )


def resumed(there: Site) -> Iterator[Figure]:
    """Serve the restored site until its runs have ended."""
    there.serve()
    begun = time.monotonic()
    runs = runs_end(there, within=ENDS_WITHIN)
    spent = time.monotonic() - begun
    yield Figure(
        "restored: runs that failed or did not end", len(runs["working"]) + len(runs["failed"]), 0, ""
    )
    yield Figure("restored: verdicts missing", runs["missing"], 0, "")
    yield Figure("restored: verdicts doubled", runs["doubled"], 0, "")
    yield Figure("restored: until its last run ended", spent, ENDS_WITHIN, "s")


@contextmanager
def elsewhere(place: Office, number: int) -> Iterator[Site]:
    """Another machine, as far as it has another PostgreSQL, broker folder and data folder."""
    folder = place.folder / f"elsewhere{number}"
    (folder / "data").mkdir(parents=True)
    with postgres() as url:
        own = {
            "DATABASE_URL": url,
            "LACE_DATA_DIR": str(folder / "data"),
            "CELERY_BROKER_URL": "filesystem://",
        }
        there = Site(folder, place.server, place.site.environment | own | {"TMPDIR": str(folder / "tmp")})
        there.world = place.site.world
        try:
            yield there
        finally:
            there.stop()


# ---------- in a process of its own ----------


def hashes(cursor: Any) -> dict[str, list[Any]]:
    """The number of rows of each table, and a hash of all their values; sign-ins are in no backup."""
    from django.db import connection

    found = {}
    for name in sorted(connection.introspection.table_names()):
        if name != "django_session":
            text = "SELECT count(*), md5(coalesce(string_agg(h, '' ORDER BY h), '')) FROM ("
            cursor.execute(f'{text}SELECT md5(t::text) AS h FROM "{name}" t) AS rows')  # noqa: S608
            found[name] = list(cursor.fetchone())
    return found


def backed_up(file: str) -> dict[str, Any]:
    """Make a backup, and take the hashes of its moment."""
    from lace_site.backup import databases, services
    from lace_site.backup.archive import Content

    taken: dict[str, Any] = {}

    class Copier(databases.PostgresCopier):
        """Takes the hashes in the transaction whose snapshot `pg_dump` gets."""

        def _content(self, cursor: Any) -> Content:
            taken.update(hashes(cursor))
            return super()._content(cursor)

    begun = time.monotonic()
    with patch.object(services, "current_copier", Copier):
        services.backup_create(Path(file))
    labels = taken["labeling_label"][0]
    return {"file": file, "tables": taken, "labels": labels, "seconds": time.monotonic() - begun}


def restored(file: str) -> dict[str, Any]:
    """Restore it, and take the hashes before the leases of the workers of then are freed."""
    from django.contrib.auth.models import AnonymousUser

    from alignment.certificates.queries.certificates import certificate_verified
    from alignment.models.certificates import Certificate
    from evaluation.models.runs import Run
    from lace_site.backup import databases, services
    from lace_site.backup.archive import Content

    taken: dict[str, Any] = {}

    class Copier(databases.PostgresCopier):
        """Takes the hashes right after the copy is loaded."""

        def load(self, source: Path, content: Content) -> None:
            super().load(source, content)
            from django.db import connection

            with connection.cursor() as cursor:
                taken.update(hashes(cursor))

    with patch.object(services, "current_copier", Copier):
        services.backup_restore(Path(file))
    words = [
        certificate_verified(body=one.body, signature=one.signature, user=AnonymousUser()).word
        for one in Certificate.objects.all()
    ]
    working = Run.objects.filter(state__in=("running", "planned")).count()
    genuine = words.count("genuine")
    return {"tables": taken, "genuine": genuine, "refused": len(words) - genuine, "working": working}
