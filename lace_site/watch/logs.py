"""How every process logs: one JSON object a line, or text for people, and never what a chat or a key says."""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from django.utils.functional import LazyObject

if TYPE_CHECKING:  # settings read this module before anything else of Django
    from django.http import HttpRequest

OWN = ("lace_site", "alignment", "evaluation", "labeling", "common")
# Programs whose texts name hosts, queues and process ids; of all others only the template is logged.
KNOWN = ("celery.beat", "celery.worker", "celery.app.control", "kombu")
# Errors of machines: their texts name hosts and files. All others may repeat a value, and lose their text.
MACHINE = ("OSError", "OperationalError", "InterfaceError", "ImproperlyConfigured", "RedisError")
PROBLEMS = ("InputProblem", "OutsideFailure")
ROOT = f"{Path(__file__).resolve().parents[2]}/"
TASK = ("name", "id", "description")  # of Celery's named values
FIRST = ("timestamp", "level", "event")

# The request that this thread answers.
current_request: ContextVar["HttpRequest | None"] = ContextVar("current_request", default=None)
Event = MutableMapping[str, Any]


def logging_config(*, form: str, level: str, debug: bool) -> dict[str, Any]:
    """Return LOGGING. `form` is json or text; `level` is of our own loggers, others begin at warnings.

    Only `debug` logs the texts of all errors, for development.
    """
    configure_structlog()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"event": {"()": "lace_site.watch.logs.formatter", "form": form, "debug": debug}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "event"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            # NB: Django's own handlers would print the same once more.
            "django": {"handlers": [], "level": "WARNING"},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            **{name: {"level": level} for name in OWN},
        },
    }


def configure_structlog() -> None:
    """Send structlog's events through the standard library, to the handler above."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def formatter(*, form: str, debug: bool) -> logging.Formatter:
    """Return the formatter of all handlers."""
    renderer: Any = _as_json if form == "json" else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_request,
            safe_event,
            whole_error if debug else safe_error,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            renderer,
        ],
        use_get_message=False,
        pass_foreign_args=True,
    )


def _as_json(_: Any, __: str, event: Event) -> str:
    ordered = {name: event[name] for name in FIRST if name in event} | dict(event)
    return json.dumps(ordered, default=str, ensure_ascii=False)


def add_request(_: Any, __: str, event: Event) -> Event:
    """Add the request's route, method and user id, as far as they are known: no query, no address."""
    request = current_request.get()
    if request is None:
        return event
    event.setdefault("method", request.method)
    if match := request.resolver_match:
        event.setdefault("route", match.view_name)
    if (user := user_id(request)) is not None:
        event.setdefault("user", user)
    return event


def user_id(request: "HttpRequest") -> int | None:
    """Return the id of the user who asks; None for a stranger, or where the session was not read yet."""
    user = vars(request).get("user")
    if isinstance(user, LazyObject):
        user = vars(request).get("_cached_user")
    return getattr(user, "pk", None)


# ---------- no text of a chat, no key ----------


def safe_event(_: Any, __: str, event: Event) -> Event:
    """Put values into the text of a standard log call only where these can be no text of strangers."""
    if event["_from_structlog"]:
        return event
    record: logging.LogRecord = event["_record"]
    args = event.pop("positional_args", None)
    if record.name.startswith("django.") and hasattr(record, "status_code"):
        # NB: the address may hold the key of an invitation.
        event["event"], event["status"] = "request refused or failed", record.status_code
        return event
    event["event"] = _text(record.name, str(event["event"]), args)
    return event


def _text(logger: str, template: str, args: Any) -> str:
    begins = logger.split(".")[0]
    trusted = begins in OWN or logger.startswith(KNOWN)
    if isinstance(args, Mapping):  # Celery names its values, among them errors and tracebacks
        shown: Any = {
            name: _value(value, trusted=name in ("name", "id", "description")) for name, value in args.items()
        }
    else:
        shown = tuple(_value(value, trusted=trusted) for value in args or ())
    try:
        text = template % shown if shown else template
    except (TypeError, ValueError):
        text = template
    return text if trusted else text.partition("\n")[0]


def _value(value: Any, *, trusted: bool) -> Any:
    if isinstance(value, BaseException):
        return error_text(value)
    return value if trusted or isinstance(value, int | float) else "…"


def error_text(error: BaseException) -> str:
    """Return an error's kind, with its text where that names machines and not what somebody wrote."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    name = type(error).__name__
    words = " ".join(str(error).split())[:300]
    if kinds.intersection(MACHINE):
        return f"{name}: {words}" if words else name
    if kinds.intersection(PROBLEMS):
        from evaluation.runs.queries.redact_errors import kind_alone  # settings are read before models

        return kind_alone(words)
    return name


def safe_error(_: Any, __: str, event: Event) -> Event:
    """Replace a traceback by the kinds of the errors and the places in the code."""
    error = _error(event.pop("exc_info", None))
    if error is None:
        return event
    event["error"] = error_text(error)
    event["error_at"] = _places(error)
    if causes := [error_text(cause) for cause in _causes(error)]:
        event["error_causes"] = causes
    return event


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return what led to an error, as a traceback would show it; five at most."""
    for _ in range(5):
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None:
            return
        yield (error := cause)


def whole_error(_: Any, __: str, event: Event) -> Event:
    """Add the traceback with its texts: for development only."""
    if error := _error(event.pop("exc_info", None)):
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()
    return event


def _error(exc_info: Any) -> BaseException | None:
    if exc_info is True:
        return sys.exc_info()[1]
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    return exc_info if isinstance(exc_info, BaseException) else None


def _places(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename.removeprefix(ROOT)}:{frame.lineno} {frame.name}" for frame in frames[-20:]]
