"""What the simulated judge knows: the truth of the demo's chats, and the error rates of its prompts."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

from alignment.demo_workspace.core.compose import GOOD, ComposedChat, Truth, chats_composed, passes_when
from alignment.demo_workspace.core.production import ProductionChat, production_composed
from alignment.demo_workspace.core.scenes import scenes_read
from evaluation.core.hashing import text_hash
from evaluation.core.transcript_fencing import render_message
from evaluation.core.types import Message
from evaluation.gateway.simulated import Case, Errors

FOLDER = Path(__file__).resolve().parent / "demo"
# Texts and truth don't depend on it.
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class DemoAnswers:
    """Answers for the simulated judge, found by the transcript in its prompt; implements `Answers`.

    Parameters
    ----------
    cases : by hash of the transcript.
    settings : `judge/error_rates.json`.
    phrases : `judge/phrases.json`.
    """

    def __init__(
        self,
        cases: Mapping[str, Case],
        settings: Mapping[str, Any],
        phrases: Mapping[str, Sequence[str]],
    ) -> None:
        self._cases, self._settings, self.phrases = cases, settings, phrases
        self._errors: dict[tuple[str, str], Errors | None] = {}
        self.seed, self.unreadable = int(settings["seed"]), float(settings["unreadable"])

    def case(self, transcript: str) -> Case | None:
        """Return what is true of a chat; None for a chat that is not the demo's."""
        address = text_hash(transcript)
        return self._cases.get(address) or production_cases().get(address)

    def topic(self, transcript: str) -> str:
        """Return the topic of a chat by what customer and bot said; "" for a chat that is not the demo's."""
        return chat_topics().get(text_hash(transcript), "")

    def drifted(self, criterion: str, **rates: float) -> "DemoAnswers":
        """Return the answers of the same judge once its model has changed: other errors on a criterion."""
        versions = self._settings["versions"]
        changed = [version | rates for version in versions[criterion]]
        settings = {**self._settings, "versions": {**versions, criterion: changed}}
        return DemoAnswers(self._cases, settings, self.phrases)

    def errors(self, key: str, prompt: str) -> Errors | None:
        """Return the rates of the newest version whose rule stands in the prompt."""
        if (key, prompt) not in self._errors:
            self._errors[key, prompt] = self._found(key, prompt)
        return self._errors[key, prompt]

    def _found(self, key: str, prompt: str) -> Errors | None:
        versions = self._settings["versions"].get(key, ())
        known = [(n, one) for n, one in enumerate(versions, 1) if one["mark"] in " ".join(prompt.split())]
        if not known:
            return None
        number, rates = known[-1]
        return Errors(
            passes_when=passes_when(key),
            version=str(number),
            miss=rates["miss"],
            alarm=rates["alarm"],
            roles=self._settings["roles"],
        )


@cache
def demo_answers() -> DemoAnswers:
    """Return the answers to the demo's chats, composed anew from the written scenes: no table holds them."""
    composed = chats_composed(scenes_read(FOLDER / "scenes"), first_day=_ANY_DAY)
    truth = written_truth()
    known = [(_address(chat.messages), chat.truth, chat.evidence) for chat in composed]
    known += [(_address(chat["messages"]), truth[chat["id"]], {}) for chat in written_chats()]
    cases = {address: Case(address, answers, evidence) for address, answers, evidence in known}
    settings, phrases = (_json(f"judge/{name}.json") for name in ("error_rates", "phrases"))
    return DemoAnswers(cases, settings, phrases)


@cache
def production() -> list[list[ProductionChat]]:
    """Return the chats of production by day: nothing about them depends on today."""
    return production_composed(scenes_read(FOLDER / "scenes"), production_settings())


def production_settings() -> dict[str, Any]:
    """Return `production.json`."""
    return cast("dict[str, Any]", _json("production.json"))


@cache
def production_cases() -> dict[str, Case]:
    """Return what is true of the chats of production, by the hash of their transcripts."""
    cases = {}
    for chat in (chat for day in production() for chat in day):
        address = _address({"role": role, "content": text} for role, text in chat.talk.messages)
        cases[address] = Case(address, chat.talk.truth, chat.talk.evidence)
    return cases


@cache
def chat_topics() -> dict[str, str]:
    """Return the topics of all chats, by the hash of what customer and bot said."""
    composed = composed_chats(first_day=_ANY_DAY)
    curated = [(chat.messages, chat.topic) for chat in composed]
    curated += [(chat["messages"], chat["topic"]) for chat in written_chats()]
    found = {_spoken(messages): topic for messages, topic in curated}
    for chat in (chat for day in production() for chat in day):
        if chat.topic:
            found[_spoken([{"role": role, "content": text} for role, text in chat.talk.messages])] = (
                chat.topic
            )
    return found


def written_chats() -> list[dict[str, Any]]:
    """Return the hand-written chats, as lines of `chats.jsonl`."""
    return [json.loads(line) for line in (FOLDER / "chats.jsonl").read_text(encoding="utf-8").splitlines()]


def written_truth() -> dict[str, Truth]:
    """Return the expected answers on the hand-written chats, by chat and criterion."""
    return {
        chat: {key: None if key in row["not_applicable"] else key in row["true"] for key in GOOD}
        for chat, row in _json("truth.json").items()
    }


def composed_chats(*, first_day: datetime, count: int | None = None) -> list[ComposedChat]:
    """Return the composed chats, begun from this day on."""
    return chats_composed(scenes_read(FOLDER / "scenes"), first_day=first_day, count=count)


def _spoken(messages: Iterable[Mapping[str, str]]) -> str:
    return _address(messages, roles=("user", "assistant"))


def _address(messages: Iterable[Mapping[str, str]], *, roles: Collection[str] = ()) -> str:
    rows = (Message(n, row["role"], row["content"]) for n, row in enumerate(messages, 1))  # type: ignore[arg-type]
    return text_hash("\n".join(render_message(row) for row in rows if not roles or row.role in roles))


def _json(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
