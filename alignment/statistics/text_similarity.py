"""Similar texts, by the words that they share."""

import re
from collections.abc import Sequence

SHARED = 0.4
_WORD = re.compile(r"[^\W\d_]{4,}")


def similar_text_groups(texts: Sequence[str]) -> list[int]:
    """For each text, the index of the first similar one; its own index if there is none.

    Two texts are similar if the Jaccard index of their sets of words of four letters or more is at least
    `SHARED`. A text without such words is similar to none. Jaccard (1912), New Phytologist 11:37.

    Examples
    --------
    >>> similar_text_groups(["The bot never apologised.", "Parcel lost", "The bot never once apologised."])
    [0, 1, 0]
    """
    firsts: list[tuple[int, set[str]]] = []
    groups = []
    for index, text in enumerate(texts):
        words = set(_WORD.findall(text.casefold()))
        group = next((first for first, theirs in firsts if _similar(words, theirs)), index)
        if group == index:
            firsts.append((index, words))
        groups.append(group)
    return groups


def _similar(one: set[str], other: set[str]) -> bool:
    union = one | other
    return bool(union) and len(one & other) / len(union) >= SHARED
