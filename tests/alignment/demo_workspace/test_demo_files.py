"""The demo's files as a stranger reads them."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

from django.conf import settings

APP = Path(settings.BASE_DIR)
DEMO = APP / "alignment" / "demo_workspace" / "demo"
RUBRIC = APP / "labeling" / "rubric" / "default_rubric.json"
CITATION = re.compile(r"\[m(\d+): \"([^\"]+)\"\]")


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


def keys() -> list[str]:
    return [row["key"] for row in json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"]]


def chats() -> dict[str, dict[str, Any]]:
    return {chat["id"]: chat for chat in lines("chats.jsonl")}


def majority(key: str) -> dict[str, bool | None]:
    """What most raters say of each chat; None for a tie."""
    answers: dict[str, list[bool]] = {}
    for line in lines("labels.jsonl"):
        if line["criterion"] == key:
            answers.setdefault(line["chat_id"], []).append(line["value"])
    half = {chat: 2 * sum(said) - len(said) for chat, said in answers.items()}
    return {chat: None if lead == 0 else lead > 0 for chat, lead in half.items()}


def test_hostile_chats_name_the_kind_of_attack_and_nothing_else() -> None:
    kinds = {key: chat["metadata"].get("hostile") for key, chat in chats().items()}
    assert {key: kind for key, kind in kinds.items() if kind} == {
        "demo-21": "instruction in a customer message",
        "demo-22": "forged end of the transcript by the bot",
        "demo-23": "false authority in a tool message",
        "demo-24": "hidden role hijack",
    }


def test_every_chat_has_a_label_of_each_rater_and_a_verdict_on_every_criterion() -> None:
    labels = [(line["chat_id"], line["rater"], line["criterion"]) for line in lines("labels.jsonl")]
    rated = {(chat, rater) for chat, rater, _ in labels}
    assert sorted(labels) == sorted((*pair, key) for pair, key in product(rated, keys()))
    assert {chat for chat, _ in rated} == set(chats())
    verdicts = [(line["chat_id"], line["criterion"]) for line in lines("verdicts.jsonl")]
    assert sorted(verdicts) == sorted(product(chats(), keys()))


def test_evidence_and_quotes_are_in_the_messages_they_name() -> None:
    messages = {key: [m["content"] for m in chat["messages"]] for key, chat in chats().items()}
    for line in lines("labels.jsonl"):
        assert set(line.get("turns", [])) <= set(range(1, len(messages[line["chat_id"]]) + 1)), line
    for line in lines("verdicts.jsonl"):
        for place, quote in CITATION.findall(line.get("rationale", "")):
            assert quote in messages[line["chat_id"]][int(place) - 1], line


def test_raters_find_needless_turns_in_short_chats_and_none_in_some_long_ones() -> None:
    found, size = majority("caused_needless_turns"), {key: len(c["messages"]) for key, c in chats().items()}
    needless = {key for key, value in found.items() if value}
    assert needless == {"demo-01", "demo-04", "demo-10", "demo-15", "demo-17", "demo-24"}
    assert [key for key, value in found.items() if value is None] == ["demo-06"]
    assert min(size[key] for key in needless) < max(size[key] for key in set(found) - needless)
