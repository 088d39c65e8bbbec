"""Argilla 2: a dataset's folder as `Dataset.from_disk` reads it: settings, dataset, records; plain Python."""

import uuid
from collections.abc import Sequence
from typing import Any

from alignment.exports.core import ToolAnswer, ToolChat, ToolCriterion

SETTINGS, DATASET, RECORDS = ".argilla/settings.json", ".argilla/dataset.json", "records.json"
CHAT = "chat"
LONGEST_NAME = 200


def user_id(rater: str) -> str:
    """
    Return the id of a rater, always the same: Argilla names users by UUIDs alone.

    Examples
    --------
    >>> user_id("anna")
    '68073f15-ad5b-5714-8e5d-15624e5c0ebb'
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"lace:rater:{rater}"))


def settings_json(criteria: Sequence[ToolCriterion]) -> dict[str, Any]:
    """Return the settings: the chat as its field, a choice and a text for each criterion."""
    return {
        "guidelines": None,
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "fields": [_property(CHAT, "Chat", {"type": "chat", "use_markdown": False}, required=True)],
        "questions": [question for one in criteria for question in _questions(one)],
        "metadata": [
            {
                "name": name,
                "title": name.title(),
                "settings": {"type": "terms"},
                "visible_for_annotators": True,
            }
            for name in ("topic", "split")
        ],
        "vectors": [],
    }


def dataset_json(name: str) -> dict[str, Any]:
    """Return the dataset's own document."""
    return {"name": name[:LONGEST_NAME], "guidelines": None, "allow_extra_metadata": True}


def record(chat: ToolChat) -> dict[str, Any]:
    """Return the record of a chat: responses by question and user, and one suggestion a question.

    Argilla keeps one suggestion a question: that of the last judge, whose name is the agent.
    """
    responses: dict[str, list[dict[str, Any]]] = {}
    for rater in chat.raters:
        for answer in rater.answers:
            for name, value in _values(answer):
                row = {"value": value, "user_id": user_id(rater.name)}
                responses.setdefault(name, []).append(row)
    suggestions: dict[str, dict[str, Any]] = {}
    for judge, answers in chat.judges.items():
        for answer in answers:
            score = answer.confidence
            for name, value in _values(answer):
                rated = score if name == answer.criterion.answer else None
                suggestions[name] = {"value": value, "score": rated, "agent": judge}
    return {
        "id": chat.external_id,
        "fields": {CHAT: [{"role": one["role"], "content": one["content"]} for one in chat.messages]},
        "metadata": {"topic": chat.topic, "split": chat.split},
        "suggestions": suggestions,
        "responses": responses,
        "vectors": {},
        "status": "completed" if chat.raters else "pending",
    }


def _values(answer: ToolAnswer) -> list[tuple[str, str]]:
    values = [(answer.criterion.answer, answer.choice)]
    return [*values, (answer.criterion.rationale, answer.rationale)] if answer.rationale else values


def _questions(one: ToolCriterion) -> list[dict[str, Any]]:
    options = [{"value": choice, "text": choice, "description": None} for choice in one.choices]
    choice = {"type": "label_selection", "options": options, "visible_options": None}
    return [
        _property(one.answer, one.question, choice, required=False) | {"description": one.definition},
        _property(one.rationale, "Why?", {"type": "text", "use_markdown": False}, required=False),
    ]


def _property(name: str, title: str, settings: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {"name": name, "title": title, "required": required, "settings": settings}
