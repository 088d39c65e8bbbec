"""The answer of a health check."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a part answers; `detail` is one clear line."""

    ok: bool
    detail: str
