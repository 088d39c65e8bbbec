"""Checks by rule whether an advocate followed its instructions."""

import re
from collections.abc import Mapping

from evaluation.core.types import Chat, Criterion, Role
from evaluation.engines.core.quotes import find_quotes, without_quotes
from evaluation.engines.core.roles import ADVOCATES, JudgeRole
from evaluation.prompts.core import argued_answer

# A brief is much longer if it has LONGER times the words of the other, and FEWEST_WORDS_MORE words more.
LONGER = 1.5
FEWEST_WORDS_MORE = 15
CHECKS = ("no_message", "unverified_quote", "concedes", "gives_verdict", "wrong_side", "longer")

_OPPONENTS = "|".join(role.mark for role in ADVOCATES)
_NO_MESSAGE = re.compile(r"\bno supporting message\b", re.IGNORECASE)
_CONCEDES = re.compile(
    r"\b(?:i (?:must |have to |will |do )?(?:concede|admit|acknowledge|grant)|admittedly|to be fair"
    rf"|in fairness|on the other hand|the (?:other side|{_OPPONENTS}) (?:is right|has a point|may be right)"
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
    *,
    advocate: JudgeRole,
    text: str,
    verdicts: Mapping[str, bool | None],
    criterion: Criterion,
    chat: Chat,
) -> tuple[str, ...]:
    """Return the flags of a brief's case on one criterion; each begins with the advocate's key.

    The rules match words and can be wrong.

    Parameters
    ----------
    text : what the brief says about the criterion.
    verdicts : the answers of a VERDICTS block in the brief, by key. The Judge does not see that block.
    chat : the judged chat, in which quotes are looked up.

    Returns
    -------
    `…_no_message` : the brief states that the chat holds no message for its side.
    `…_unverified_quote` : a quote is not in the message it names.
    `…_concedes` : words of concession, or about the exercise itself.
    `…_gives_verdict` : a verdict on the criterion.
    `…_wrong_side` : it names the answer that it should argue against.
    """
    own_words = without_quotes(text)
    answers = {_MEANS[match[1].casefold()] for match in _VERDICT.finditer(own_words)}
    if isinstance(verdicts.get(criterion.key), bool):
        answers.add(verdicts[criterion.key] is True)
    argued = None if advocate.argues is None else argued_answer(criterion, argues=advocate.argues)
    checks = {
        "no_message": bool(_NO_MESSAGE.search(own_words)),
        "unverified_quote": any(quote.match == "missing" for quote in find_quotes(text=text, chat=chat)),
        "concedes": bool(_CONCEDES.search(own_words)),
        "gives_verdict": criterion.key in verdicts,
        "wrong_side": argued is not None and (not argued) in answers,
    }
    return tuple(f"{advocate.key}_{name}" for name, holds in checks.items() if holds)


def length_flags(cases: Mapping[Role, str]) -> tuple[str, ...]:
    """Return the flag of the case that is much longer than the next longest, if there is one.

    Parameters
    ----------
    cases : at least two texts, by the advocate's key.

    Examples
    --------
    >>> length_flags(dict(customer="word " * 80, support="word " * 40))
    ('customer_longer',)
    """
    words = {role: len(text.split()) for role, text in cases.items()}
    *_, fewer, most = sorted(words, key=lambda role: words[role])
    longer = words[most] >= LONGER * words[fewer] and words[most] - words[fewer] >= FEWEST_WORDS_MORE
    return (f"{most}_longer",) if longer else ()
