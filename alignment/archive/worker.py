"""Makes the archive that a lead has asked for."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from alignment.archive.queries import Tick, archive_dump
from alignment.models.archives import WorkspaceArchive
from common.files import open_private
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost, lease_beat

log = logging.getLogger(__name__)

ARCHIVE = "alignment.tasks.make_archive"
BEAT_SECONDS = 2.0


class _Archives(LeasedRows[WorkspaceArchive]):
    model = WorkspaceArchive
    task = ARCHIVE
    open_state = WorkspaceArchive.State.OPEN
    working_state = WorkspaceArchive.State.WORKING
    start = {"done": 0}
    reopen = {"rung_at": None}

    def fail(self, row: WorkspaceArchive) -> None:
        row.state, row.error = WorkspaceArchive.State.FAILED, f"its worker died {MOST_TRIES} times"
        row.save(update_fields=["state", "error"])
        log.error("archive %s could not be made %s times", row.pk, MOST_TRIES)

    def log_death(self, row: WorkspaceArchive) -> None:
        log.warning("archive %s is made again: its worker died", row.pk)


ARCHIVES = _Archives()


def archive_path(pk: int) -> Path:
    """Return where the file of an archive is; web servers and workers share the folder."""
    return Path(settings.LACE_ARCHIVE_DIR) / f"workspace-{pk}.zip"


def archive_work(archive_id: int) -> None:
    """Make one archive; do nothing unless it is open. A disk that fails ends it with the reason."""
    with ARCHIVES.work(archive_id) as (row, lease):
        if row is not None:
            _make(row, lease)


def archives_sweep() -> None:
    """Enqueue the archives that wait."""
    ARCHIVES.sweep()


def _make(row: WorkspaceArchive, lease: WorkerLease) -> None:
    path, owned = archive_path(row.pk), ARCHIVES.owned(row.pk, lease)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.*"):  # of a worker that was killed
            left.unlink(missing_ok=True)
        with _beating(row, lease) as tick, open_private(draft) as target:
            manifest = archive_dump(target, tick=tick)
        draft.replace(path)
    except LeaseLost:
        log.warning("archive %s: another worker took over", row.pk)
        return
    except OSError as error:
        owned.update(
            state=WorkspaceArchive.State.FAILED, lease=None, error=str(error.strerror or error)[:300]
        )
        return
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    finished = {"finished_at": timezone.now(), "size": path.stat().st_size, "lease": None}
    if owned.update(state=WorkspaceArchive.State.DONE, done=manifest.rows, total=manifest.rows, **finished):
        _forget_older(row.pk)


def _forget_older(pk: int) -> None:
    """Keep the newest archive alone: each is as large as the workspace."""
    settled = (WorkspaceArchive.State.DONE, WorkspaceArchive.State.FAILED)
    for older in WorkspaceArchive.objects.filter(pk__lt=pk, state__in=settled):
        archive_path(older.pk).unlink(missing_ok=True)
        older.delete()


@contextmanager
def _beating(row: WorkspaceArchive, lease: WorkerLease) -> Iterator[Tick]:
    """Renew the lease and store the progress from a second thread.

    NB: the first one reads the database of one moment, and cannot write until it has read all of it.
    """
    progress, ended, lost = [0, 0], threading.Event(), threading.Event()

    def beat() -> None:
        try:
            while not ended.wait(BEAT_SECONDS):
                lease_beat(lease.pk)
                ARCHIVES.owned(row.pk, lease).update(done=progress[0], total=progress[1])
        except LeaseLost:
            lost.set()
        finally:
            connection.close()

    def tick(done: int, total: int) -> None:
        if lost.is_set():
            raise LeaseLost(f"archive {row.pk}")
        progress[:] = done, total

    thread = threading.Thread(target=beat, name=f"archive {row.pk}", daemon=True)
    thread.start()
    try:
        yield tick
    finally:
        ended.set()
        thread.join()
