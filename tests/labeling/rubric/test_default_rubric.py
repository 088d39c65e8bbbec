"""The default rubric: five dimensions, and both parts of chat efficiency."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings

RUBRIC = Path(settings.BASE_DIR) / "labeling" / "rubric" / "default_rubric.json"


def criteria() -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"]}


def test_chat_efficiency_has_conciseness_and_turn_count() -> None:
    parts = [row["key"] for row in criteria().values() if row["dimension"] == "chat_efficiency"]
    assert parts == ["reasked_known_information", "concise_replies", "caused_needless_turns"]


def test_a_needless_turn_is_a_fault_that_every_chat_can_have() -> None:
    turns = criteria()["caused_needless_turns"]
    assert (turns["passes_when"], turns["allow_na"], turns["critical"]) == (False, False, False)
    assert turns["tier"] == "simple"  # no knowledge of the business decides it


def test_turn_count_is_told_apart_from_its_neighbours() -> None:
    definition = criteria()["caused_needless_turns"]["definition"]
    assert "concise_replies" in definition
    assert "reasked_known_information" in definition


def test_raters_get_a_guideline_and_both_examples_for_turn_count() -> None:
    turns = criteria()["caused_needless_turns"]
    assert all(turns[name] for name in ("guideline", "true_example", "false_example"))
