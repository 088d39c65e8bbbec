"""Celery tasks of regression tests."""

import logging

from celery import shared_task

from alignment.runner.regressions import regression_advance, regressions_waiting

log = logging.getLogger(__name__)


@shared_task(name="alignment.tasks.gate")  # type: ignore[untyped-decorator]  # celery has no types
def gate() -> None:
    """Take every regression test whose runs are over a step further."""
    for test_id in regressions_waiting():
        try:
            regression_advance(test_id)
        except Exception:
            # One test that cannot be decided must not hold up the others.
            log.exception("regression test %s could not be decided", test_id)
