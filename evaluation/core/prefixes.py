"""Counts how much of the prompts repeats an earlier beginning, which endpoints may bill at a lower price."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache

from evaluation.core.types import PromptMessage

# An entry needs about 200 bytes; a prompt adds five to twenty.
REMEMBERED = 20_000


class Prefixes:
    """Remembers the beginnings of prompts as hashes; those unused for longest are dropped first.

    Endpoints reuse exact prefixes only, per model. OpenAI does so from 1,024 tokens, for minutes
    (developers.openai.com/api/docs/guides/prompt-caching). Use one object per model. The count is in whole
    parts; `cached_tokens` of a reply tells what the endpoint really reused.

    Parameters
    ----------
    remembered : how many beginnings to keep.
    """

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, messages: Sequence[PromptMessage]) -> tuple[int, int]:
        """Add a prompt; return its characters, and how many of them repeat an earlier prompt's beginning.

        Examples
        --------
        >>> prefixes, rules = Prefixes(), PromptMessage("system", ("Be fair.",))
        >>> prefixes.add([rules, PromptMessage("user", ("first chat",))])
        (18, 0)
        >>> prefixes.add([rules, PromptMessage("user", ("other chat",))])
        (18, 8)
        """
        characters = repeated = 0
        beginning, repeats = hashlib.blake2b(digest_size=16), True
        for message in messages:
            for number, part in enumerate(message.parts):
                # The header distinguishes ("ab", "c") from ("a", "bc"), and system from user.
                beginning.update(f"{message.role} {number} {len(part)} ".encode())
                beginning.update(_digest(part))
                length = len(part) + (2 if number else 0)  # a blank line joins the parts
                repeats = self._remember(beginning.digest()) and repeats
                characters += length
                repeated += length if repeats else 0
        return characters, repeated

    def _remember(self, digest: bytes) -> bool:
        """Mark a beginning as just used; return whether it was known."""
        known = digest in self._seen
        self._seen[digest] = None
        self._seen.move_to_end(digest)
        if len(self._seen) > self._remembered:
            self._seen.popitem(last=False)
        return known


@lru_cache(maxsize=256)  # most parts recur in the next prompts
def _digest(part: str) -> bytes:
    return hashlib.blake2b(part.encode(errors="surrogatepass"), digest_size=16).digest()
