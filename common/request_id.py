"""The id of the request at work, as its log lines and the audit log name it."""

from structlog.contextvars import get_contextvars


def current_request_id() -> str:
    """Return the id of the request that this thread works for; "" on the command line."""
    return str(get_contextvars().get("request_id", ""))
