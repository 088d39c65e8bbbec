"""Addresses by content: the same value has the same text, the same text the same hash."""

import hashlib
import json
from typing import Any


def text_hash(text: str) -> str:
    """sha256 of a text, in hex.

    >>> text_hash("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces.

    >>> canonical({"b": [1, 2], "a": None})
    '{"a":null,"b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
