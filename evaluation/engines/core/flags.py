"""What the flags of a verdict say, in words: the one table that pages go by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluation.engines.core.roles import ADVOCATES


@dataclass(frozen=True, slots=True)
class FlagWords:
    """A flag in a few words, and in a sentence what it means for whoever reads the verdict."""

    flag: str
    name: str
    meaning: str


# Which sample and which window a verdict rests on; the page shows that by itself.
PLACES = ("from_sample", "from_window", "windows")

_WORDS: Mapping[str, tuple[str, str]] = {
    "unverified_quote": (
        "Quote not found",
        "The rationale quotes words that are not in the message it names.",
    ),
    "addresses_evaluation": (
        "Chat speaks to the judge",
        "The judge noted that a message addresses the evaluation; it was judged as any other words.",
    ),
    "canary_leaked": ("Private code given away", "The answer repeats a code that only our own text holds."),
    "suspect_instruction": ("Text like an instruction", "A message is worded like an order to the judge."),
    "suspect_verdict": ("Verdict words", "A message holds words in the form of a verdict."),
    "suspect_invisible": ("Hidden characters", "A message holds characters that nobody can see."),
    "suspect_encoded": ("Encoded text", "A message holds a long run of encoded text."),
    "suspect_fence": ("Forged fence", "A message holds text like the fence around the chat."),
    "tied": ("Samples tied", "The samples have no majority, so there is no verdict."),
    "audited": ("Audit agrees", "Read again without its verdict block, the rationale says the same."),
    "audit_contradicts": (
        "Audit contradicts",
        "Read again without its verdict block, the rationale comes to another answer.",
    ),
    "audit_unclear": (
        "Audit unclear",
        "Read again without its verdict block, the rationale comes to no answer.",
    ),
    "change_without_reason": (
        "Change without a reason",
        "Reflection changed the verdict and named neither a quote that is there nor a rule.",
    ),
    "keep_but_changed": (
        "Says keep, changed",
        "The audit says KEEP, but its verdict differs.",
    ),
    "change_but_kept": ("Says change, kept", "The audit says CHANGE, but its verdict is the draft's."),
    "one_sided": ("One-sided debate", "One side brought no brief; the Judge had the other's alone."),
    "no_briefs": ("No briefs", "Neither side brought a brief; the Judge had the chat alone."),
    "formatter_refused": ("Formatter refused", "The formatter model refused to read the rationale."),
    "formatter_cut_off": ("Formatter cut off", "The formatter's answer ended at its limit."),
    "formatter_too_long": ("Too long to format", "The rationale does not fit the formatter model."),
    "formatter_failed": ("Formatter failed", "The formatter never answered; only it has to be asked again."),
}
_BRIEF_WORDS: Mapping[str, tuple[str, str]] = {
    "no_brief": ("brought no brief", "It refused or said nothing, twice."),
    "no_message": ("found no message", "It says that the chat holds nothing for its side."),
    "unverified_quote": ("misquotes", "It quotes words that are not in the message it names."),
    "concedes": ("concedes", "It grants the other side something, or speaks of the exercise."),
    "gives_verdict": ("gives a verdict", "It gave one though told not to; the Judge did not see it."),
    "wrong_side": ("argues the wrong side", "It names the answer it was to argue against."),
    "longer": ("wrote more", "Its brief is much longer than the other side's."),
}


def flag_words(flag: str) -> FlagWords:
    """Return the words of a flag; an unknown one is its own name.

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
    """Return the words of each flag, once, in the order given, without places such as `from_sample:1`."""
    return tuple(flag_words(flag) for flag in dict.fromkeys(flags) if flag.partition(":")[0] not in PLACES)


def place_of(flags: Iterable[str], name: str) -> int | None:
    """Return the number in a flag such as `from_sample:1`, None where there is none.

    >>> place_of(["tied", "from_sample:1"], "from_sample")
    1
    """
    for flag in flags:
        kind, _, number = flag.partition(":")
        if kind == name and number.isdecimal():
            return int(number)
    return None
