"""How much of the prompts repeats the beginning of an earlier one, which endpoints may bill at less."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from evaluation.core.types import PromptMessage

# An entry takes about 200 bytes; one prompt leaves five to twenty.
REMEMBERED = 20_000


class Prefixes:
    """Remembers how prompts began, as hashes only; the beginnings used longest ago are forgotten first.

    Endpoints reuse an exact prefix only, OpenAI's from 1,024 tokens on and for minutes
    (developers.openai.com/api/docs/guides/prompt-caching), each model for itself: use one object a model.
    What is counted here repeats, in whole parts; what an endpoint reused stands in its `cached_tokens`.
    """

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def add(self, messages: Sequence[PromptMessage]) -> tuple[int, int]:
        """Take in a prompt; return its characters and how many of them repeat an earlier prompt's beginning.

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
                # The mark keeps ("ab", "c") and ("a", "bc") apart, and system from user.
                beginning.update(f"{message.role} {number} {len(part)} ".encode())
                beginning.update(part.encode(errors="surrogatepass"))
                length = len(part) + (2 if number else 0)  # a blank line joins the parts
                repeats = self._remember(beginning.digest()) and repeats
                characters += length
                repeated += length if repeats else 0
        return characters, repeated

    def _remember(self, digest: bytes) -> bool:
        """Put a beginning on record as used just now; True if it was there."""
        known = digest in self._seen
        self._seen[digest] = None
        self._seen.move_to_end(digest)
        if len(self._seen) > self._remembered:
            self._seen.popitem(last=False)
        return known
