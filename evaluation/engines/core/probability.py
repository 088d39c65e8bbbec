"""P(True) of a verdict, from the probabilities of the tokens that spell it."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from evaluation.core.transcript_fencing import without_invisible
from evaluation.core.types import TokenLogprob
from evaluation.engines.core.verdict_block import own_block

_DECORATION = " \t*_`.,;"
_Says = Literal["true", "false", "open", "other"]


def p_true(tokens: Sequence[TokenLogprob], *, key: str, value: bool) -> float | None:
    """Return p(TRUE) / (p(TRUE) + p(FALSE)) of the answer to `key` in the last VERDICTS block.

    From the colon on, alternatives are compared token by token until one begins an answer, however the model
    splits words. An answer that is not among the alternatives counts as 0.

    NB: the rationale has settled the answer by then, so the value is near 0 or 1 and no measure of doubt
    (Wang et al., "Improving LLM-as-a-judge inference with the judgment distribution", arXiv 2503.03064). Use
    samples.

    Parameters
    ----------
    tokens : the answer's tokens with natural-log probabilities and the best alternatives.
    key, value : the criterion, and the verdict that was read.

    Returns
    -------
    0 to 1. None if there are no alternatives, or if the tokens do not spell `value` for `key`.

    Examples
    --------
    >>> rest = TokenLogprob("polite:", 0.0, (("polite:", 0.0),))
    >>> last = TokenLogprob(" TRUE", -0.5, ((" TRUE", -0.5), (" FALSE", -0.5)))
    >>> p_true([TokenLogprob("VERDICTS\\n", 0.0, ()), rest, last], key="polite", value=True)
    0.5
    """
    words = [without_invisible(token.token) for token in tokens]
    text = "".join(words)
    block = own_block(text, keys=[key.casefold()])
    answer = next((one for one in block.answers if one.key in (key.casefold(), "")), None) if block else None
    if answer is None or answer.word != str(value).lower():
        return None
    starts = list(accumulate(map(len, words), initial=0))
    first = bisect_right(starts, answer.place - 1) - 1
    begun = text[starts[first] : answer.place]
    return _weighed(tokens[first:], words[first:], begun=begun)


def _weighed(tokens: Sequence[TokenLogprob], words: Sequence[str], *, begun: str) -> float | None:
    """Follow the tokens from the colon on; `begun` is what the first one holds up to the colon."""
    sums = {"true": 0.0, "false": 0.0}
    written, reached = "", 1.0
    for token, word in zip(tokens, words, strict=True):
        ways = _ways(token)
        for way, probability in ways.items():
            says = _says(written + way, begun=begun)
            if says in sums:
                sums[says] += reached * probability
        written += word
        if _says(written, begun=begun) != "open":
            total = sum(sums.values())
            return sums["true"] / total if total and len(ways) > 1 else None
        reached *= ways[word]
    return None


def _ways(token: TokenLogprob) -> dict[str, float]:
    """Return every known continuation with its probability, the one taken among them."""
    ways: dict[str, float] = {}
    for word, logprob in {token.token: token.logprob, **dict(token.top)}.items():
        plain = without_invisible(word)
        ways[plain] = ways.get(plain, 0.0) + math.exp(min(logprob, 0.0))
    return ways


def _says(written: str, *, begun: str) -> _Says:
    """Return the answer that a line begins; `open` while it can still be any."""
    if not written.startswith(begun):
        return "open" if begun.startswith(written) else "other"
    line, ended, _ = written[len(begun) :].partition("\n")
    word = line.strip(_DECORATION).casefold()
    if not word:
        return "other" if ended else "open"
    if "true".startswith(word):
        return "true"
    return "false" if "false".startswith(word) else "other"
