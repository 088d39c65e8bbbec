"""Composes the demo's chats from written scene pieces; the truth follows from the pieces used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from alignment.demo_workspace.core.scenes import Dice, Scenes, Topic, filled, turns

Truth = Mapping[str, bool | None]
STYLES = {"plain": 0.5, "lower": 0.22, "hasty": 0.18, "emphatic": 0.1}
# The answer of each criterion where no piece says otherwise; acknowledged_upset applies to upset customers.
GOOD: Truth = {
    "understood_every_request": True,
    "guessed_missing_detail": False,
    "contextual_relevancy": True,
    "stated_wrong_fact": False,
    "self_consistent": True,
    "actionable_answer": True,
    "reasked_known_information": False,
    "concise_replies": True,
    "caused_needless_turns": False,
    "customer_left_dissatisfied": False,
    "acknowledged_upset": None,
    "polite_professional": True,
    "exposed_sensitive_data": False,
    "followed_required_procedure": None,
}
# The good answer of the criteria whose usual answer is "not applicable".
_PASSES: Truth = {**GOOD, "acknowledged_upset": True, "followed_required_procedure": True}
# What a kind of piece decides. An address or alarm left undone is a missed procedure as well.
DECIDES: Mapping[str, Truth] = {
    "wrong fact": {"stated_wrong_fact": True},
    "question wrong": {"stated_wrong_fact": True},
    "wrong frame": {"contextual_relevancy": False, "actionable_answer": False},
    "vague": {"actionable_answer": False},
    "procedure missed": {"followed_required_procedure": False},
    "re-ask": {"reasked_known_information": True},
    "needless": {"caused_needless_turns": True},
    "misread": {"understood_every_request": False},
    "guess": {"guessed_missing_detail": True},
    "clash": {"self_consistent": False},
    "padding": {"concise_replies": False},
    "rude": {"polite_professional": False},
    "slip": {"polite_professional": False},
    "exposed": {"exposed_sensitive_data": True},
    "ack good": {"acknowledged_upset": True},
    "ack poor": {"acknowledged_upset": False},
    "closing dissatisfied": {"customer_left_dissatisfied": True},
}
NO_REQUEST = (
    *("understood_every_request", "contextual_relevancy", "actionable_answer", "acknowledged_upset"),
    "followed_required_procedure",
)
# Topics whose procedure is a step that only the right answers take.
ACTS = ("payment", "allergy", "address_change")
_HASTY = {
    "you ": "u ",
    "please": "pls",
    "because": "cause",
    "thanks": "thx",
    "and ": "n ",
    "order": "oder",
}


@dataclass(frozen=True, slots=True)
class ComposedChat:
    """A chat with its truth by criterion, and the message that decides it, where one does (from 1)."""

    id: str
    topic: str
    split: str
    title: str
    started_at: datetime
    messages: Sequence[Mapping[str, str]]
    truth: Truth
    evidence: Mapping[str, int]

    def as_line(self) -> dict[str, Any]:
        """Return the chat as a line of `chats.jsonl`; the truth stays out of it."""
        return {
            "id": self.id,
            "topic": self.topic,
            "split": self.split,
            "started_at": self.started_at.isoformat(),
            "messages": list(self.messages),
            "metadata": {"title": self.title, "demo": True},
        }


def passes_when(key: str) -> bool:
    """Return the good answer to a criterion of the default rubric."""
    return bool(_PASSES[key])


def chats_composed(scenes: Scenes, *, first_day: datetime, count: int | None = None) -> list[ComposedChat]:
    """Return the composed chats; the same scenes give the same texts.

    Parameters
    ----------
    first_day : when the first chat began; the others follow over two weeks. It changes no text.
    count : how many; None for as many as the mix says. Fewer are the first ones.
    """
    dice, wanted = Dice(scenes.mix["seed"]), scenes.mix["chats"] if count is None else count
    chats: dict[str, ComposedChat] = {}
    while len(chats) < wanted:
        chat = _chat(len(chats) + 1, scenes, dice, first_day)
        chats.setdefault("\n".join(message["content"] for message in chat.messages), chat)
    return list(chats.values())


@dataclass(frozen=True, slots=True)
class Conversation:
    """What customer, bot and tools said, as (role, text), with its truth and the deciding messages."""

    messages: Sequence[tuple[str, str]]
    truth: Truth
    evidence: Mapping[str, int]

    @property
    def title(self) -> str:
        """The beginning of what the customer wants."""
        opening = next(text for role, text in self.messages if role == "user")
        return opening if len(opening) <= 60 else f"{opening[:57].rsplit(' ', 1)[0]} …"


def conversation(scenes: Scenes, dice: Dice, *, topic: Topic | None) -> Conversation:
    """Return a conversation about a topic; None is smalltalk."""
    draft = _Draft(scenes, dice)
    if topic is None:
        draft.smalltalk()
    else:
        draft.conversation(topic)
    return Conversation(draft.messages, draft.truth, draft.evidence)


def pauses(messages: Sequence[tuple[str, str]], dice: Dice) -> Iterator[int]:
    """Yield the seconds from the beginning of a chat to each of its messages."""
    seconds = 0
    for role, _ in messages:
        yield seconds
        seconds += dice.number(3, 9) if role == "user" else dice.number(15, 80)


def _chat(number: int, scenes: Scenes, dice: Dice, first_day: datetime) -> ComposedChat:
    found = None
    if not dice.chance(scenes.mix["smalltalk"]):
        key = dice.draw("topic", [one.key for one in scenes.topics])
        found = next(one for one in scenes.topics if one.key == key)
    talk = conversation(scenes, dice, topic=found)
    started = first_day + timedelta(minutes=50 * number + dice.number(0, 40))
    split = dice.weighted(scenes.mix["splits"])
    times = (started + timedelta(seconds=pause) for pause in pauses(talk.messages, dice))
    return ComposedChat(
        id=f"bw-{number:04d}",
        topic=found.key if found else "smalltalk",
        split=split,
        title=talk.title,
        started_at=started,
        messages=[
            {"role": role, "content": text, "created_at": at.isoformat()}
            for (role, text), at in zip(talk.messages, times, strict=True)
        ],
        truth=talk.truth,
        evidence=talk.evidence,
    )


@dataclass(slots=True)
class _Draft:
    """A chat in the making."""

    scenes: Scenes
    dice: Dice
    messages: list[tuple[str, str]] = field(default_factory=list)
    truth: dict[str, bool | None] = field(default_factory=lambda: dict(GOOD))
    evidence: dict[str, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    style: str = "plain"
    faults: set[str] = field(default_factory=set)
    padding_left: int = 0

    def smalltalk(self) -> None:
        """Write a chat without a request."""
        self.style = self.dice.weighted(STYLES)
        self.truth |= dict.fromkeys(NO_REQUEST)
        self._exchange("user", self._shared("smalltalk"))

    def conversation(self, topic: Topic) -> None:
        """Write a chat about a topic: opening, questions back, the answer, what follows, and the end."""
        mix, dice = self.scenes.mix, self.dice
        self.style = dice.weighted(STYLES)
        self.faults = {kind for kind, share in mix["faults"].items() if dice.chance(share)}
        self.padding_left = 3 if "padding" in self.faults else int(dice.chance(0.08))
        if topic.procedure:
            self.truth["followed_required_procedure"] = True
        upset = dice.chance(mix["upset"])
        if dice.chance(mix["bot greets"]):
            self._say("assistant", self._shared("hello of the bot"))
        addition = self._opening(topic, upset)
        self._questions_back()
        kind = self._answer_kind(topic)
        if "check" in topic.pieces and kind in ("right", "wrong fact"):
            self._exchange("assistant", self._own(topic, "check"))
        if dice.chance(0.55):
            self._say("tool", self._own(topic, "tool"))
        self._answer(topic, kind, upset, addition)
        self._what_follows(topic)
        self._close()

    # ---------- parts ----------

    def _opening(self, topic: Topic, upset: bool) -> list[str]:
        """Write the customer's first message; return the turns of a second request in it, without those."""
        text = self._own(topic, "opening upset" if upset else "opening")
        kind = "misread" if "misread" in self.faults else "second request"
        if kind == "second request" and not self.dice.chance(self.scenes.mix["extras"][kind]):
            self._say("user", text)
            return []
        request, *rest = turns(self._shared(kind))
        self._say("user", f"{text} {request}")
        return rest

    def _questions_back(self) -> None:
        known = any(self._value("order") in text for _, text in self.messages)
        if not known and (self.dice.chance(self.scenes.mix["asks for the order"]) or "re-ask" in self.faults):
            self._say("assistant", self._shared("ask order"))
            self._say("user", self._shared("give order"))
        if "re-ask" in self.faults:
            self._exchange("assistant", self._shared("re-ask"), decides="re-ask")
        if "needless" in self.faults:
            self._exchange("assistant", self._shared("needless"), decides="needless")

    def _answer(self, topic: Topic, kind: str, upset: bool, addition: Sequence[str]) -> None:
        parts = [self._own(topic, kind)]
        place = len(self.messages) + 1
        if upset:
            ack = "ack poor" if "ack poor" in self.faults else "ack good"
            parts.insert(0, self._shared(ack))
            self._decide(ack, place)
        for fault in ("slip", "rude"):
            if fault in self.faults:
                parts.insert(0 if fault == "slip" else len(parts), self._shared(fault))
                self._decide(fault, place)
        if addition:
            parts.append(addition[0])
        self._decide(kind, place)
        if topic.key in ACTS and kind in ("wrong frame", "vague"):
            self._decide("procedure missed", place)
        self._say("assistant", self._padded(" ".join(parts)))
        if len(addition) > 1:
            self._exchange("user", " => ".join(addition[1:]), decides="misread")

    def _answer_kind(self, topic: Topic) -> str:
        shares = dict(self.scenes.mix["answers"])
        missed = shares.pop("procedure missed")
        if "procedure missed" in topic.pieces and self.dice.chance(missed):
            return "procedure missed"
        return self.dice.weighted(shares)

    def _what_follows(self, topic: Topic) -> None:
        mix, dice = self.scenes.mix, self.dice
        if dice.chance(mix["wrong question"]):
            self._exchange("user", self._own(topic, "question wrong"), decides="question wrong")
        elif dice.chance(mix["extras"]["question"]):
            self._exchange("user", self._own(topic, "question"))
        for kind in ("guess", "clash"):
            if kind in self.faults:
                self._exchange("user", self._shared(kind), decides=kind)
        if "guess" not in self.faults and dice.chance(mix["extras"]["no guess"]):
            self._exchange("user", self._shared("no guess"))
        if "exposed" in self.faults:
            self._exchange("assistant", self._shared("exposed"), decides="exposed")
        for kind in ("aside", "language"):
            if dice.chance(mix["extras"][kind]):
                self._exchange("user", self._shared(kind))
        if self.padding_left and "padding" in self.faults and self.messages[-1][0] == "assistant":
            _, text = self.messages.pop()
            more = [self._shared("padding") for _ in range(self.padding_left)]
            self.messages.append(("assistant", "\n\n".join((text, *more))))

    def _close(self) -> None:
        """Write the customer's last message; the more went wrong, the more likely a bitter one."""
        mix, dice = self.scenes.mix, self.dice
        went_wrong = self.faults | {
            kind for kind in ("wrong frame", "vague") if self.truth["actionable_answer"] is False
        }
        if self.truth["actionable_answer"]:
            went_wrong -= {"wrong frame", "vague"}
        bitter = sum(share for kind, share in mix["dissatisfied"].items() if kind in went_wrong)
        last_is_customer = self.messages[-1][0] == "user"
        if dice.chance(min(0.9, mix["dissatisfied"]["base"] + bitter)):
            self._say("user", self._shared("closing dissatisfied"))
            self._decide("closing dissatisfied", len(self.messages))
        elif not last_is_customer and not dice.chance(mix["silent"]):
            kind = "closing neutral" if bitter and dice.chance(0.6) else "closing satisfied"
            self._say("user", self._shared(kind))

    # ---------- words ----------

    def _padded(self, text: str) -> str:
        if not self.padding_left:
            return text
        before = self._shared("padding")
        self.padding_left -= 1
        if "padding" in self.faults:
            self._decide("padding", len(self.messages) + 1)
        return f"{before}\n\n{text}"

    def _exchange(self, speaker: str, piece: str, *, decides: str = "") -> None:
        """Write the turns of a piece, of customer and bot in turn; a fault is in the bot's last one."""
        for turn in turns(piece):
            self._say(speaker, turn)
            if decides and speaker == "assistant":
                self._decide(decides, len(self.messages))
            speaker = "assistant" if speaker == "user" else "user"

    def _decide(self, kind: str, place: int) -> None:
        for criterion, answer in DECIDES.get(kind, {}).items():
            self.truth[criterion] = answer
            self.evidence[criterion] = place

    def _say(self, role: str, text: str) -> None:
        words = filled(text, self._value)
        self.messages.append((role, _styled(words, self.style) if role == "user" else words))

    def _own(self, topic: Topic, kind: str) -> str:
        return self.dice.draw(f"{topic.key} {kind}", topic.pieces[kind])

    def _shared(self, kind: str) -> str:
        return self.dice.draw(kind, self.scenes.shared[kind])

    def _value(self, slot: str) -> str:
        """Return a slot's value: the same one throughout a chat."""
        if slot not in self.values:
            self.values[slot] = self._new_value(slot)
        return self.values[slot]

    def _new_value(self, slot: str) -> str:
        dice = self.dice
        if slot in self.scenes.slots:
            return dice.draw(slot, self.scenes.slots[slot])
        numbers = {
            "order": f"BW-{dice.number(48200, 59999)}",
            "amount": f"€{dice.number(2, 28)}.{dice.number(10, 99)}",
            "minutes": str(dice.number(32, 88)),
            "time": f"{dice.number(9, 20)}:{dice.number(0, 5)}5",
            "guests": str(dice.number(4, 14)),
            "four": str(dice.number(1000, 9999)),
            "postcode": str(dice.number(10115, 99998)),
            "age": str(dice.number(34, 79)),
            "count2": str(dice.number(6, 40)),
            "email": f"{self._value('customer').lower()}{dice.number(10, 99)}@mail.example",
        }
        return numbers[slot]


def _styled(text: str, style: str) -> str:
    """Return a customer's words as this customer types."""
    if style == "lower":
        return text.lower().rstrip(".").replace("bw-", "BW-")
    if style == "hasty":
        for whole, short in _HASTY.items():
            text = text.replace(whole, short, 1)
        return text.replace("'", "").rstrip(".")
    return text.rstrip(".") + "!!" if style == "emphatic" and text.endswith(".") else text
