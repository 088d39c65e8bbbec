"""What the flags of a verdict say, in words: the one table that pages, exports and docs go by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlagWords:
    """A flag in a few words, and in a sentence what it means for whoever reads the verdict."""

    flag: str
    name: str
    meaning: str


_WORDS: Mapping[str, tuple[str, str]] = {
    "unverified_quote": (
        "Quote not found",
        "The rationale quotes words that are not in the message it names.",
    ),
    "addresses_evaluation": (
        "Chat speaks to the judge",
        "The judge noted that a message addresses the evaluation; it was judged as any other words.",
    ),
    "one_sided": ("One-sided debate", "One side brought no brief; the Judge had the other's alone."),
    "no_briefs": ("No briefs", "Neither side brought a brief; the Judge had the chat alone."),
    "no_customer_brief": ("No critic's brief", "The Customer critic refused or said nothing, twice."),
    "no_support_brief": ("No defender's brief", "The Support defender refused or said nothing, twice."),
    "change_without_reason": (
        "Change without a reason",
        "Reflection changed the verdict and named neither a quote that is there nor a rule.",
    ),
    "keep_but_changed": (
        "Says keep, changed",
        "The audit says KEEP, but its verdict differs from the draft.",
    ),
    "change_but_kept": ("Says change, kept", "The audit says CHANGE, but its verdict is the draft's."),
    "audit_contradicts": (
        "Audit contradicts",
        "Read again without its verdict block, the rationale comes to another answer.",
    ),
    "formatter_refused": ("Formatter refused", "The formatter model refused to read the rationale."),
    "formatter_cut_off": ("Formatter cut off", "The formatter's answer ended at its limit."),
    "formatter_too_long": ("Too long to format", "The rationale does not fit the formatter model."),
    "formatter_failed": ("Formatter failed", "The formatter never answered; only it has to be asked again."),
    "invisible_characters": ("Hidden characters", "The chat holds characters that nobody can see."),
    "instruction_like": ("Text like an instruction", "A message is worded like an order to the judge."),
    "verdict_words": ("Verdict words", "A message holds words in the form of a verdict."),
    "encoded_text": ("Encoded text", "A message holds a long run of encoded text."),
    "windowed": ("Judged in parts", "The chat was too long for one call and was judged in parts."),
    "samples_differ": ("Samples differ", "The samples did not all give the same answer."),
}


def flag_words(flag: str) -> FlagWords:
    """Return the words of a flag; an unknown one is its own name.

    >>> flag_words("one_sided").name
    'One-sided debate'
    >>> flag_words("new_kind").name
    'New kind'
    """
    if flag in _WORDS:
        return FlagWords(flag, *_WORDS[flag])
    return FlagWords(flag, flag.replace("_", " ").capitalize(), "")


def flags_in_words(flags: Iterable[str]) -> tuple[FlagWords, ...]:
    """Return the words of each flag, once, in the order given."""
    return tuple(flag_words(flag) for flag in dict.fromkeys(flags))
