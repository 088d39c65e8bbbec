"""Invented raters: who labels which chat, with which errors, when; seeded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from alignment.demo_workspace.core.compose import ComposedChat, Truth, passes_when
from alignment.demo_workspace.core.scenes import Dice

# Chats that a rater labels in a sitting, and the pause until the next one.
SITTING, PAUSE = 24, timedelta(hours=17)


@dataclass(frozen=True, slots=True)
class InventedRater:
    """A rater with a character: error rates of every criterion, and other ones of some.

    alone : share of the chats with one label that this rater labels. seconds : for an answer. skips : share
    of chats skipped.
    """

    name: str
    account: str
    alone: float
    seconds: int
    skips: float
    rates: Mapping[str, float]
    criteria: Mapping[str, Mapping[str, float]]

    def error(self, criterion: str, kind: str) -> float:
        """Return the chance of an error of a kind: miss, alarm or not_applicable."""
        return float(self.criteria.get(criterion, {}).get(kind, self.rates[kind]))


class InventedChat(Protocol):
    """A chat whose truth is known."""

    @property
    def id(self) -> str: ...
    @property
    def truth(self) -> Truth: ...
    @property
    def evidence(self) -> Mapping[str, int]: ...


def raters_read(settings: Mapping[str, Any]) -> list[InventedRater]:
    """Return the raters of `raters.json`."""
    kinds = ("miss", "alarm", "not_applicable")
    return [
        InventedRater(
            name=row["name"],
            account=row["account"],
            alone=row["alone"],
            seconds=row["seconds"],
            skips=row["skips"],
            rates={kind: row[kind] for kind in kinds},
            criteria=row["criteria"],
        )
        for row in settings["raters"]
    ]


def labels_composed(
    chats: Sequence[ComposedChat], settings: Mapping[str, Any], *, everybody: Sequence[str], begin: datetime
) -> Iterator[dict[str, Any]]:
    """Yield labels, as lines of `labels.jsonl`: the truth with each rater's errors.

    Parameters
    ----------
    everybody : ids of the chats that every rater labels first: those of the calibration round and gold.
    begin : when the first rater begins.
    """
    dice, raters = Dice(settings["seed"]), raters_read(settings)
    clocks = {rater.name: begin + timedelta(minutes=11 * n) for n, rater in enumerate(raters)}
    done = dict.fromkeys(clocks, 0)
    first = set(everybody)
    for chat in sorted(chats, key=lambda chat: chat.id not in first):
        for rater in raters if chat.id in first else _team(raters, settings["several"], dice):
            moment = clocks[rater.name]
            for key in chat.truth:
                moment += timedelta(seconds=max(2, dice.number(rater.seconds // 2, rater.seconds * 3 // 2)))
                yield label_line(chat, key, rater, dice, settings, moment)
            done[rater.name] += 1
            pause = timedelta(seconds=20) if done[rater.name] % SITTING else PAUSE
            clocks[rater.name] = moment + pause


def _team(raters: Sequence[InventedRater], several: Mapping[str, float], dice: Dice) -> list[InventedRater]:
    """Return who labels a chat: three raters, two, or one of those who work alone."""
    by_name = {rater.name: rater for rater in raters}
    size = dice.weighted({"three": several["three"], "two": several["two"], "one": 1 - sum(several.values())})
    if size == "one":
        return [by_name[dice.weighted({rater.name: rater.alone for rater in raters})]]
    wanted = 3 if size == "three" else 2
    start = dice.number(0, len(raters) - 1)
    step = dice.number(1, 2)
    return [raters[(start + step * n) % len(raters)] for n in range(wanted)]


def label_line(
    chat: InventedChat,
    key: str,
    rater: InventedRater,
    dice: Dice,
    settings: Mapping[str, Any],
    moment: datetime,
) -> dict[str, Any]:
    """Return a rater's label on a chat, as a line of `labels.jsonl`: the truth, or one of their errors."""
    value = _answer(chat.truth[key], key, rater, dice)
    line: dict[str, Any] = {
        "chat_id": chat.id,
        "criterion": key,
        "rater": rater.name,
        "value": value,
        "created_at": moment.isoformat(),
    }
    kind = "na" if value is None else "fine" if value == passes_when(key) else "fault"
    if dice.chance(settings["rationale_share"] * (1.0 if kind == "fault" else 0.15)):
        line["rationale"] = dice.draw(f"{rater.name} {kind}", settings["rationales"][kind])
    if kind == "fault" and key in chat.evidence and value == chat.truth[key]:
        line["turns"] = [chat.evidence[key]]
    return line


def _answer(truth: bool | None, key: str, rater: InventedRater, dice: Dice) -> bool | None:
    if truth is None:
        return passes_when(key) if dice.chance(rater.error(key, "not_applicable")) else None
    kind = "alarm" if truth == passes_when(key) else "miss"
    return not truth if dice.chance(rater.error(key, kind)) else truth
