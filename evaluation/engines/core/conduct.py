"""How an advocate kept to its duty, by rule: quotes, side, concessions, verdicts, length."""

import re
from collections.abc import Mapping

from evaluation.core.types import Chat, Criterion
from evaluation.engines.core.prose import about
from evaluation.engines.core.quotes import find_quotes, without_quotes
from evaluation.prompts.core import Advocate, argued_answer

# A brief of so many times the other's words, and so many words more, is the longer one.
LONGER = 1.5
FEWEST_WORDS_MORE = 15

_NO_MESSAGE = re.compile(r"\bno supporting message\b", re.IGNORECASE)
_CONCEDES = re.compile(
    r"\b(?:i (?:must |have to |will |do )?(?:concede|admit|acknowledge|grant)|admittedly|to be fair"
    r"|in fairness|on the other hand|the (?:other side|defender|critic) (?:is right|has a point|may be right)"
    r"|as an ai|language model|devil's advocate|i was (?:told|asked|assigned) to)\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"\b(?:verdict|correct answer|right answer|final answer|conclusion)\b[^.!?\n]{0,30}?"
    r"(?:\bis\b|\bmust be\b|\bshould be\b|:)[\s\"“'`*]{0,4}(true|false|yes|no)\b",
    re.IGNORECASE,
)
_MEANS = {"true": True, "yes": True, "false": False, "no": False}


def brief_flags(
    *, side: Advocate, text: str, given: Mapping[str, bool | None], criterion: Criterion, chat: Chat
) -> tuple[str, ...]:
    """Return what is odd about a side's case on one criterion; flags begin with the side.

    `…_no_message`: it found nothing in the chat for its side. `…_unverified_quote`: a quote is not in the
    message named. `…_concedes`: words of concession, or about the exercise. `…_gives_verdict`: a VERDICTS
    block, which is cut from what the Judge reads. `…_wrong_side`: it names the answer it was to argue
    against. `given` are the block's answers. Words are a rule of thumb: flags are to be looked at.
    """
    own = without_quotes(text)
    named = {_MEANS[match[1].casefold()] for match in _VERDICT.finditer(own)}
    if isinstance(given.get(criterion.key), bool):
        named.add(given[criterion.key] is True)
    found = {
        "no_message": bool(_NO_MESSAGE.search(own)),
        "unverified_quote": not all(quote.found for quote in find_quotes(text=text, chat=chat)),
        "concedes": bool(_CONCEDES.search(own)),
        "gives_verdict": criterion.key in given,
        "wrong_side": (not argued_answer(side=side, criterion=criterion)) in named,
    }
    return tuple(f"{side}_{name}" for name, holds in found.items() if holds)


def length_flags(*, customer: str, support: str) -> tuple[str, ...]:
    """Return which brief is much longer than the other, if one is.

    >>> length_flags(customer="word " * 80, support="word " * 40)
    ('customer_longer',)
    """
    words = {"customer": len(customer.split()), "support": len(support.split())}
    few, many = sorted(words, key=lambda side: words[side])
    longer = words[many] >= LONGER * words[few] and words[many] - words[few] >= FEWEST_WORDS_MORE
    return (f"{many}_longer",) if longer else ()


def case_on(criterion: Criterion, *, text: str, keys: list[str]) -> str:
    """Return what a brief says about one criterion; all of it where it is not divided by criteria."""
    return about(criterion.key, text=text, keys=keys) or text
