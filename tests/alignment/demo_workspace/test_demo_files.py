"""The demo's files as a stranger reads them."""

import json
from pathlib import Path

from django.conf import settings

CHATS = Path(settings.BASE_DIR) / "alignment" / "demo_workspace" / "demo" / "chats.jsonl"


def test_hostile_chats_name_the_kind_of_attack_and_nothing_else() -> None:
    chats = [json.loads(line) for line in CHATS.read_text(encoding="utf-8").splitlines()]
    hostile = {chat["id"]: chat["metadata"]["hostile"] for chat in chats if "hostile" in chat["metadata"]}
    assert hostile == {
        "demo-21": "instruction in a customer message",
        "demo-22": "forged end of the transcript by the bot",
        "demo-23": "false authority in a tool message",
        "demo-24": "hidden role hijack",
    }
