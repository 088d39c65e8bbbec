"""What can go wrong, in words for the log of a CI job."""

import json
from collections.abc import Mapping
from typing import Any

import httpx


class WorkbenchError(Exception):
    """The workbench did not do what was asked; `status` is that of its answer, 0 without one."""

    def __init__(self, message: str, *, status: int = 0, body: Any = None) -> None:
        super().__init__(message)
        self.status, self.body = status, body

    @property
    def code(self) -> str:
        """The workbench's code for the problem, such as `newer_version`; "" for none."""
        return str(self.body.get("code", "")) if isinstance(self.body, Mapping) else ""


class InvalidRequest(WorkbenchError):
    """The workbench refused the input, or its state does not allow the request."""


class NotAllowed(WorkbenchError):
    """The token is not valid, lacks a scope, or the object does not exist."""


class Unreachable(WorkbenchError):
    """No usable answer, after all retries."""


class NotFinished(WorkbenchError):
    """The run or test stands still, or takes longer than the caller waits."""


def error_of(response: httpx.Response) -> WorkbenchError:
    """Return the error that an answer stands for."""
    status, what = response.status_code, f"{response.request.method} {response.request.url.path}"
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    reason = _reason(body) or response.reason_phrase
    if status == 401:
        return NotAllowed(f"The token is unknown, revoked or expired ({what}).", status=status, body=body)
    if status in (403, 404):
        text = f"Not found, or the token lacks a scope for it ({what})."
        return NotAllowed(text, status=status, body=body)
    if status in (400, 409, 415):
        return InvalidRequest(reason, status=status, body=body)
    if response.is_success:
        text = f"The answer is no JSON ({what}). Is the address that of the workbench?"
        return Unreachable(text, status=status)
    return Unreachable(f"The workbench answered {status}: {reason} ({what})", status=status, body=body)


def _reason(body: Any) -> str:
    """Return the messages of an error: `detail`, or those by field."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return " ".join(filter(None, map(_reason, body)))
    if not isinstance(body, Mapping):
        return ""
    if isinstance(detail := body.get("detail"), str):
        return detail
    return "; ".join(text if name == "detail" else f"{name}: {text}" for name, text in _fields(body))


def _fields(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, text) for name, value in body.items() if (text := _reason(value))]
