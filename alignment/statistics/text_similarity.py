"""Texts that say much the same, by the words they share."""

import re
from collections.abc import Sequence

SHARED = 0.4
_WORD = re.compile(r"[^\W\d_]{4,}")


def groups_of(texts: Sequence[str]) -> list[int]:
    """
    For each text the place of the first one that it is like, its own where there is none.

    Alike are texts whose words of four letters and more, as sets, overlap by `SHARED` of their union or more
    (Jaccard). What has no such words is like nothing.

    Examples
    --------
    >>> groups_of(["The bot never apologised.", "Parcel lost", "The bot never once apologised."])
    [0, 1, 0]
    """
    found: list[tuple[int, set[str]]] = []
    places = []
    for place, text in enumerate(texts):
        words = set(_WORD.findall(text.casefold()))
        like = next((first for first, theirs in found if _alike(words, theirs)), place)
        if like == place:
            found.append((place, words))
        places.append(like)
    return places


def _alike(one: set[str], other: set[str]) -> bool:
    union = one | other
    return bool(union) and len(one & other) / len(union) >= SHARED
