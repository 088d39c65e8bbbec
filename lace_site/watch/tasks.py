"""What Celery's processes log: the task, the row it works on, and the request that asked for it."""

import inspect
import time
from typing import Any

import structlog
from celery.signals import before_task_publish, setup_logging, task_postrun, task_prerun


@setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def keep_our_logging(**_: Any) -> None:
    """Do nothing: with a receiver Celery leaves the configuration of Django's settings as it is."""


@before_task_publish.connect  # type: ignore[untyped-decorator]
def add_headers(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Send the time, and the id of the request that enqueues a task, with the message."""
    if headers is None:
        return
    headers["sent_at"] = time.time()
    if identity := structlog.contextvars.get_contextvars().get("request_id"):
        headers["request_id"] = identity


@task_prerun.connect  # type: ignore[untyped-decorator]
def bind_task(task: Any, task_id: str, args: Any, kwargs: Any, **_: Any) -> None:
    """Add the task, its ids (`run` of a `run_id`) and the request's id to all that it logs."""
    structlog.contextvars.clear_contextvars()
    about = {"task": task.name, "task_id": task_id, **ids(task.run, args, kwargs)}
    if identity := getattr(task.request, "request_id", None):
        about["request_id"] = identity
    structlog.contextvars.bind_contextvars(**about)


@task_postrun.connect  # type: ignore[untyped-decorator]
def unbind_task(**_: Any) -> None:
    """Forget the task."""
    structlog.contextvars.clear_contextvars()


def ids(function: Any, args: Any, kwargs: Any) -> dict[str, int]:
    """
    Return a task's arguments that are ids of rows.

    Examples
    --------
    >>> def process_units(run_id: int, enqueued_at: str = "") -> None: ...
    >>> ids(process_units, [7, "2026-11-29"], {})
    {'run': 7}
    """
    try:
        bound = inspect.signature(function).bind_partial(*args, **kwargs)
    except TypeError:
        return {}
    return {
        name.removesuffix("_id"): value
        for name, value in bound.arguments.items()
        if name.endswith("_id") and isinstance(value, int)
    }
