"""Celery tasks of labelling: an id in, the work called."""

from functools import partial

from celery import shared_task

from labeling.transfer.services.undo import UNDO
from labeling.transfer.services.work import CHECK, STORE, check_work, store_work, undo_work

LONGEST_SECONDS = 4 * 3600
# The message of a lost worker comes again; a second one for the same import finds nothing to do.
import_task = partial(shared_task, acks_late=True, reject_on_worker_lost=True, time_limit=LONGEST_SECONDS)


@import_task(name=CHECK)  # type: ignore[untyped-decorator]  # celery has no types
def check_import(import_id: int) -> None:
    """Find every problem of one import."""
    check_work(import_id)


@import_task(name=STORE)  # type: ignore[untyped-decorator]  # celery has no types
def store_import(import_id: int) -> None:
    """Write one import, all of it or nothing."""
    store_work(import_id)


@import_task(name=UNDO)  # type: ignore[untyped-decorator]  # celery has no types
def undo_import(import_id: int) -> None:
    """Take one large import back."""
    undo_work(import_id)
