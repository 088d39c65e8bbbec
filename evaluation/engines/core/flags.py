"""The name and meaning of each verdict flag; the one table that pages use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluation.engines.core.roles import ADVOCATES


@dataclass(frozen=True, slots=True)
class FlagWords:
    """A flag, its short name, and what it means for the reader of the verdict."""

    flag: str
    name: str
    meaning: str


# Flags with the sample and window of a verdict, which pages show separately.
PLACES = ("from_sample", "from_window", "windows")

_WORDS: Mapping[str, tuple[str, str]] = {
    "unverified_quote": (
        "Quote not found",
        "The rationale quotes words that are not in the message it names.",
    ),
    "addresses_evaluation": (
        "Chat addresses the judge",
        "The judge noted that a message addresses the evaluation; it was judged like any other text.",
    ),
    "canary_leaked": ("Private code leaked", "The answer repeats a code that occurs only in our prompt."),
    "suspect_instruction": (
        "Text like an instruction",
        "A message is worded like an instruction to the judge.",
    ),
    "suspect_verdict": ("Verdict words", "A message contains text in the form of a verdict."),
    "suspect_invisible": ("Hidden characters", "A message contains invisible characters."),
    "suspect_encoded": ("Encoded text", "A message contains a long run of encoded text."),
    "suspect_fence": ("Forged fence", "A message contains text like the fence around the chat."),
    "true_without_passage": (
        "True without a passage",
        "No passage of the articles was found, so this True rests on what the knowledge does not say.",
    ),
    "lexical_only": (
        "Search by words only",
        "The endpoint gave no embeddings, so the passages were found by their words alone.",
    ),
    "tied": ("Samples tied", "The samples have no majority, so there is no verdict."),
    "audited": (
        "Audit agrees",
        "Read again without its verdict block, the rationale reaches the same answer.",
    ),
    "audit_contradicts": (
        "Audit contradicts",
        "Read again without its verdict block, the rationale reaches another answer.",
    ),
    "audit_unclear": (
        "Audit unclear",
        "Read again without its verdict block, the rationale reaches no answer.",
    ),
    "change_without_reason": (
        "Change without a reason",
        "Reflection changed the verdict without a verified quote or a rule.",
    ),
    "keep_but_changed": (
        "Says keep, changed",
        "The audit says KEEP, but its verdict differs.",
    ),
    "change_but_kept": ("Says change, kept", "The audit says CHANGE, but its verdict equals the draft's."),
    "one_sided": ("One-sided debate", "An advocate gave no brief; the Judge read only the other's."),
    "no_briefs": ("No briefs", "No advocate gave a brief; the Judge read only the chat."),
    "formatter_refused": ("Formatter refused", "The formatter model refused to read the rationale."),
    "formatter_cut_off": ("Formatter cut off", "The formatter's answer reached its token limit."),
    "formatter_too_long": ("Too long to format", "The rationale does not fit the formatter model."),
    "formatter_failed": ("Formatter failed", "The formatter never answered; only it must be retried."),
}
_BRIEF_WORDS: Mapping[str, tuple[str, str]] = {
    "no_brief": ("gave no brief", "It refused or gave an empty answer, twice."),
    "no_message": ("found no message", "It states that the chat has no message for its side."),
    "unverified_quote": ("misquotes", "It quotes words that are not in the message it names."),
    "concedes": ("concedes", "It concedes a point to the other side, or mentions the exercise."),
    "gives_verdict": ("gives a verdict", "It gave one against its instructions; the Judge did not see it."),
    "wrong_side": ("argues the wrong side", "It names the answer that it should argue against."),
    "longer": ("wrote more", "Its brief is much longer than the other side's."),
}


def flag_words(flag: str) -> FlagWords:
    """Return the name and meaning of a flag; an unknown flag is its own name.

    Examples
    --------
    >>> flag_words("one_sided").name, flag_words("support_concedes").name
    ('One-sided debate', 'Defender concedes')
    >>> flag_words("new_kind").name
    'New kind'
    """
    if flag in _WORDS:
        return FlagWords(flag, *_WORDS[flag])
    for role in ADVOCATES:
        kind = "no_brief" if flag == f"no_{role.key}_brief" else flag.removeprefix(f"{role.key}_")
        if kind != flag and kind in _BRIEF_WORDS:
            predicate, meaning = _BRIEF_WORDS[kind]
            return FlagWords(flag, f"{role.short_name} {predicate}", meaning)
    return FlagWords(flag, flag.replace("_", " ").capitalize(), "")


def flags_in_words(flags: Iterable[str]) -> tuple[FlagWords, ...]:
    """Return the words of each different flag, in order, without places such as `from_sample:1`."""
    return tuple(flag_words(flag) for flag in dict.fromkeys(flags) if flag.partition(":")[0] not in PLACES)


def place_of(flags: Iterable[str], name: str) -> int | None:
    """Return the number in a flag such as `from_sample:1`; None if no flag has this name.

    Examples
    --------
    >>> place_of(["tied", "from_sample:1"], "from_sample")
    1
    """
    for flag in flags:
        kind, _, number = flag.partition(":")
        if kind == name and number.isdecimal():
            return int(number)
    return None
