"""Composes the demo's production: weeks of chats with releases of the bot and an experiment; seeded."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from alignment.demo_workspace.core.compose import Conversation, Truth, conversation, pauses
from alignment.demo_workspace.core.scenes import Dice, Scenes

WEEKS, DAYS_A_WEEK = 8, 7
SMALLTALK, UNKNOWN = "smalltalk", ""
# The bot answers from six in the morning; most customers write in the afternoon.
OPENS, CLOSES = 6 * 60, 22 * 60


@dataclass(frozen=True, slots=True)
class ProductionChat:
    """A chat of a day; `day` counts from 0, `minute` from midnight. An empty topic was not sent."""

    id: str
    day: int
    minute: int
    topic: str
    talk: Conversation
    seconds: Sequence[int]
    customer: str
    version: str
    experiment: str
    variant: str

    @property
    def truth(self) -> Truth:
        """The answer of each criterion."""
        return self.talk.truth

    @property
    def evidence(self) -> Mapping[str, int]:
        """The deciding message of a criterion, where one is."""
        return self.talk.evidence

    def as_line(self, midnight: datetime) -> dict[str, Any]:
        """Return the chat as the bot sends it; the truth stays out of it. `midnight` begins its day."""
        started = midnight + timedelta(minutes=self.minute)
        times = (started + timedelta(seconds=second) for second in self.seconds)
        line = {
            "id": self.id,
            "topic": self.topic,
            "started_at": started.isoformat(),
            "messages": [
                {"role": role, "content": text, "created_at": at.isoformat()}
                for (role, text), at in zip(self.talk.messages, times, strict=True)
            ],
            "unit_id": self.customer,
            "experiment": self.experiment,
            "variant": self.variant,
            "metadata": {"title": self.talk.title, "demo": True, "bot_version": self.version},
        }
        return {name: value for name, value in line.items() if value}


def weeks_begin(last: date) -> date:
    """Return the Monday on which the weeks begin whose last one holds this day.

    >>> weeks_begin(date(2026, 11, 28)).isoformat()
    '2026-10-05'
    """
    return last - timedelta(days=last.weekday() + DAYS_A_WEEK * (WEEKS - 1))


def week_of(day: int) -> int:
    """Return the week of a day, from 1."""
    return day // DAYS_A_WEEK + 1


def production_composed(scenes: Scenes, settings: Mapping[str, Any]) -> list[list[ProductionChat]]:
    """Return the chats of each day of all weeks; the same settings give the same chats.

    Parameters
    ----------
    settings : those of `production.json`. A release and a variant change how often the bot makes a fault; an
        incident is a week in which it answers a topic wrongly. NB: it has as many pieces as the topic.
    """
    dice, numbers = Dice(settings["seed"]), iter(range(1, 1_000_000))
    days = range(WEEKS * DAYS_A_WEEK)
    return [
        [_chat(next(numbers), day, scenes, settings, dice) for _ in _arrivals(day, settings)] for day in days
    ]


def _arrivals(day: int, settings: Mapping[str, Any]) -> Iterator[int]:
    yield from range(settings["chats"][day % DAYS_A_WEEK])


def _chat(number: int, day: int, scenes: Scenes, settings: Mapping[str, Any], dice: Dice) -> ProductionChat:
    customer = f"customer-{dice.number(1, settings['customers']):04d}"
    experiment, variant = _assigned(customer, day, settings["experiment"])
    release = next(one for one in reversed(settings["releases"]) if one["week"] <= week_of(day))
    faults = release["faults"] | settings["experiment"]["variants"].get(variant, {})
    topics = {one.key: one for one in scenes.topics}
    incident = next((one for one in settings["incidents"] if one["week"] == week_of(day)), None)
    key = dice.weighted(settings["topics"] | ({incident["topic"]: incident["chats"]} if incident else {}))
    if incident and key == incident["topic"]:
        scenes = replace(scenes, mix={**scenes.mix, "answers": scenes.mix["answers"] | incident["answers"]})
        topics[key] = replace(topics[key], pieces={**topics[key].pieces, **incident["pieces"]})
    talk = conversation(_with_faults(scenes, faults), dice, topic=topics.get(key))
    return ProductionChat(
        id=f"shop-{number:05d}",
        day=day,
        minute=OPENS + (dice.number(0, CLOSES - OPENS) + dice.number(0, CLOSES - OPENS)) // 2,
        topic=UNKNOWN if dice.chance(settings["unknown"]) else key,
        talk=talk,
        seconds=list(pauses(talk.messages, dice)),
        customer=customer,
        version=release["version"],
        experiment=experiment,
        variant=variant,
    )


def _with_faults(scenes: Scenes, faults: Mapping[str, float]) -> Scenes:
    if not faults:
        return scenes
    return replace(scenes, mix={**scenes.mix, "faults": {**scenes.mix["faults"], **faults}})


def _assigned(customer: str, day: int, experiment: Mapping[str, Any]) -> tuple[str, str]:
    """Return experiment and variant: a customer keeps theirs."""
    first, last = experiment["weeks"]
    if not first <= week_of(day) <= last:
        return "", ""
    variants = list(experiment["variants"])
    place = zlib.crc32(f"{experiment['key']} {customer}".encode()) % len(variants)
    return experiment["key"], variants[place]
