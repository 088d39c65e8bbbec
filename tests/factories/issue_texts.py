"""Rationales with planted problems: each problem in several wordings, between common phrases and noise."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

# Each problem: the topics in which it occurs, and parts of sentences that say it.
PROBLEMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "refund_days": (
        ("returns",),
        (
            "the bot promises the refund within three days although the policy says fourteen",
            "it states a wrong refund period: three days instead of fourteen",
            "refund period of three days is invented, fourteen days are correct",
            "the customer is told that the money is back after three days, the refund period is fourteen",
        ),
    ),
    "tracking": (
        ("delivery",),
        (
            "the bot repeats the tracking link and never says where the parcel is",
            "no status of the parcel, only the same tracking link again",
            "the customer asks where the parcel is and gets the tracking link for a third time",
            "tracking link instead of an answer about the parcel",
        ),
    ),
    "voucher": (
        ("payment", "returns"),
        (
            "it rejects the voucher code without a reason",
            "the voucher code is declared expired although it is valid until December",
            "the bot calls a valid voucher expired",
            "no reason is given why the voucher code was rejected",
        ),
    ),
    "address": (
        ("delivery", "account"),
        (
            "the change of the delivery address is confirmed but not carried out",
            "the bot says the new address is saved, the order still shows the old address",
            "the old address remains in the order after the bot confirmed the change",
            "address change confirmed without doing it",
        ),
    ),
    "anrede": (
        ("konto",),
        (
            "der Bot duzt die Kundin, obwohl sie siezt",
            "die Anrede wechselt vom Sie zum Du",
            "Anrede mit Du gegenüber einer Kundin, die siezt",
            "der Bot bleibt beim Du, die Kundin schreibt Sie",
        ),
    ),
    "tuikuan": (
        ("退款",),
        (
            "机器人没有说明退款需要多少天",
            "客户询问退款时间,机器人没有回答多少天",
            "退款多少天到账没有说明",
            "机器人只道歉,没有说明退款需要多少天到账",
        ),
    ),
}
_BEGIN, _MIDDLE, _END = (
    ("bra", "cli", "dor", "fen", "gul", "kor", "lam", "ner", "pol", "ster"),
    ("ba", "do", "gi", "lu", "me", "ri", "ta"),
    ("ck", "n", "nd", "rt", "st", "x"),
)
COMMON = (
    "The assistant is polite.",
    "The answer is short and friendly.",
    "Therefore the criterion is not met.",
    "The customer remains unsatisfied at the end of the chat.",
    "This makes the verdict False.",
    "The rest of the chat gives no reason for another verdict.",
    "The definition asks for a correct and complete answer.",
    "In the second message the customer asks again.",
)
# Invented words: a problem that only one chat has, and details of orders.
WORDS = [f"{one}{two}{three}" for one in _BEGIN for two in _MIDDLE for three in _END]


@dataclass(frozen=True, slots=True)
class Planted:
    """A generated rationale: its topic, its text, and the problem in it ("" for noise)."""

    topic: str
    text: str
    problem: str


def planted(counts: dict[str, int], *, noise: int, seed: int) -> list[Planted]:
    """Rationales of these problems, and single ones that share no problem, in random order."""
    rng = random.Random(seed)
    rows = [_about(problem, rng) for problem, count in counts.items() for _ in range(count)]
    rows += [_single(rng) for _ in range(noise)]
    rng.shuffle(rows)
    return rows


def _about(problem: str, rng: random.Random) -> Planted:
    topics, parts = PROBLEMS[problem]
    said = rng.sample(parts, rng.choice((1, 2, 2)))
    return Planted(rng.choice(topics), _prose(said, rng), problem)


def _single(rng: random.Random) -> Planted:
    topics = [topic for topics, _ in PROBLEMS.values() for topic in topics]
    words = " ".join(rng.sample(WORDS, 9))
    return Planted(rng.choice(topics), _prose([words], rng), "")


def _prose(said: Sequence[str], rng: random.Random) -> str:
    parts = [*rng.sample(COMMON, rng.choice((1, 2, 3))), *(f"{one}." for one in said)]
    rng.shuffle(parts)
    extra = " ".join(rng.sample(WORDS, 2))
    return " ".join((*parts, f"Order {rng.randint(10_000, 99_999)}, {extra}."))
