"""From one version to the next and back under load: nothing may be lost, refused or judged twice.

The version of `LACE_UPGRADE_FROM` (a commit or tag, by default the parent of this one) serves raters and
programs on PostgreSQL and Valkey. Meanwhile this version migrates the database, works beside the old one,
takes its place, and gives it back. What finds no server is sent again, as the rating screen does.
`LACE_UPGRADE_SECONDS=10` shortens each step.
"""

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings

from bench import Figure
from bench._child import in_child
from bench._crowd import Crowd
from bench._office import Office, office, runs_end
from bench._site import Site

OLD = os.environ.get("LACE_UPGRADE_FROM", "HEAD~1")
SECONDS = float(os.environ.get("LACE_UPGRADE_SECONDS", "30"))
COUNTS = {"rater": 24, "author": 0, "lead": 1, "program": 8}
THINK, ARRIVE, CHATS, JUDGES = 1.0, 2.0, 5_000, 2
ENDS_WITHIN = 300.0


def figures() -> Iterator[Figure]:
    """Labels of each step, what was lost, doubled or refused, and whether every run ended."""
    with TemporaryDirectory(prefix="lace-old-") as name:
        old, commit = checked_out(Path(name))
        with office(counts=COUNTS, chats=CHATS, demo=None, judges=JUDGES, code=old) as place:
            crowd = place.crowd(counts=COUNTS | {"lead": 0}, think=THINK, rate=ARRIVE, stubborn=True)
            time.sleep(sum(COUNTS.values()) / ARRIVE)
            saved = [step(place, crowd, title) for title in moves(place, old)]
            found = crowd.end(stop=True, timeout=120)
            runs = runs_end(place.site, within=2 * ENDS_WITHIN)
            lost, doubled = place.lost(found)
    for error in found.errors[:10]:
        print(f"{error['scenario']}, {error['name']}: {error['error']} {error['text']}", file=sys.stderr)
    print(f"from {commit}; {found.again} requests sent again", file=sys.stderr)
    for title, count in saved:
        yield Figure(f"labels saved, {title}", count, 1, "", floor=True)
    yield Figure(f"{len(found.saved):,} labels, {runs['runs']} runs: labels lost", lost, 0, "")
    yield Figure("labels doubled", doubled, 0, "")
    yield Figure("verdicts lost", runs["missing"], 0, "")
    yield Figure("verdicts doubled", runs["doubled"], 0, "")
    yield Figure("runs that failed or did not end", len(runs["working"]) + len(runs["failed"]), 0, "")
    yield Figure("requests refused", len(found.errors), 0, "")


def checked_out(folder: Path) -> tuple[Path, str]:
    """The files of the old version and its commit. Raises `RuntimeError` where git does not have it."""

    def git(*words: str) -> bytes:
        done = subprocess.run(["git", *words], cwd=settings.BASE_DIR, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"LACE_UPGRADE_FROM={OLD}: {done.stderr.decode().strip()}")
        return done.stdout

    with tarfile.open(fileobj=BytesIO(git("archive", OLD))) as files:
        files.extractall(folder, filter="data")
    return folder, git("rev-parse", "--short", f"{OLD}^{{commit}}").decode().strip()


def moves(place: Office, old: Path) -> Iterator[str]:
    """One step of the way after the other; its name."""
    site, new = place.site, settings.BASE_DIR
    yield "old version"
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "1"]
    subprocess.run(command, cwd=new, env=os.environ | site.environment, stdout=sys.stderr, check=True)
    yield "old version on the new tables"
    folder = place.folder / "beside"
    folder.mkdir()
    beside = Site(folder, place.server, site.environment | {"TMPDIR": str(folder / "tmp")})
    try:
        beside.serve()
        yield "both versions"
        replace(site, new)
    finally:
        beside.stop()
    yield "new version"
    replace(site, old)
    yield "old version again"


def replace(site: Site, code: Path) -> None:
    """End a version in good order and start another one at its address."""
    site.stop()
    site.code = code
    site.serve()


def step(place: Office, crowd: Crowd, title: str) -> tuple[str, int]:
    """Let the crowd work for a while; the name of the step and how many labels it stored."""
    before = stored(place)
    time.sleep(SECONDS)
    if crowd.over:
        raise RuntimeError("the crowd has gone")
    return title, stored(place) - before


def stored(place: Office) -> int:
    """How many revisions of labels there are now."""
    return len(in_child("_office", "labels_stored", {}, place.site.environment)["labels"])
