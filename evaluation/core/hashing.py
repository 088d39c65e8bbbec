"""Content addresses: equal values have equal text, and equal text has an equal hash."""

import hashlib
import json
from functools import lru_cache
from typing import Any


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text as 64 hexadecimal digits.

    Examples
    --------
    >>> text_hash("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256)
def part_hash(part: str) -> str:
    """Return `text_hash` of a part of a prompt; most parts recur in the next prompts."""
    return text_hash(part)


def canonical(value: Any) -> str:
    """Return a value as JSON with sorted keys and no spaces.

    Raises TypeError for a value that JSON cannot hold.

    Examples
    --------
    >>> canonical({"b": [1, 2], "a": None})
    '{"a":null,"b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
