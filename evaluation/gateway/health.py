"""Checks whether the model endpoint answers, without calling a model."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx2

from evaluation.gateway.embedded import EMBEDDED_NOTICE, EmbeddedModelError
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.simulated import SIMULATED_NOTICE

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a health check; `detail` is one line."""

    ok: bool
    detail: str


def check_endpoint(endpoint: Endpoint, *, locate: Callable[[], str] | None) -> Check:
    """Request the model list once. Any answer except a refused key or a server error counts as healthy."""
    if endpoint.simulated:
        return Check(True, SIMULATED_NOTICE)
    try:
        base_url = locate() if locate else endpoint.base_url
        with httpx2.Client(
            timeout=SECONDS, follow_redirects=False, trust_env=not endpoint.embedded
        ) as client:
            status = client.get(
                endpoint.url("/models", base_url=base_url), headers=endpoint.headers
            ).status_code
    except EmbeddedModelError as error:
        return Check(False, str(error))
    except (httpx2.HTTPError, OSError):
        return Check(False, f"{endpoint.id} cannot be reached")
    name = f"embedded model ({EMBEDDED_NOTICE})" if endpoint.embedded else endpoint.id
    if status in (401, 403):
        return Check(False, f"{name} refuses the key")
    return Check(status < 500, f"{name} answers with status {status}")
