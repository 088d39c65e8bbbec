"""Exports of other tools in small, written in the shapes those tools use."""

from typing import Any

CHOICES = {
    "true": ["Polite"],
    "false": ["Rude", "Cold"],
    "not_applicable": ["No reply"],
    "no_answer": ["Skip"],
}
MAPPING = {
    "criteria": {
        "polite": {"question": "tone", "comment": "why", **CHOICES},
        "refunded": {"question": "stars", "true": [4, 5], "false": [1, 2], "not_applicable": [3]},
    },
    "raters": {"7": "Ada", "9f1c": "Ada", "ben@example.org": "Ben"},
}


def control(name: str, kind: str, value: Any) -> dict[str, Any]:
    """One result of an annotation."""
    return {"id": f"r-{name}", "type": kind, "from_name": name, "to_name": "chat", "value": {kind: value}}


def annotation(by: Any, *results: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One person's work on a task."""
    times = {"created_at": "2026-03-01T10:00:00.5Z", "updated_at": "2026-03-01T10:05:00Z"}
    rest = {"was_cancelled": False, "ground_truth": False, "lead_time": 30.0, "completed_by": by}
    return {"id": 1, "result": list(results), **times, **rest} | fields


def task(chat: str, *annotations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A task of Label Studio's JSON."""
    return {
        "id": 11,
        "data": {"chat_id": chat, "dialogue": [{"author": "user", "text": "…"}]},
        "annotations": list(annotations),
        "predictions": [],
        "drafts": [],
        "project": 3,
    } | fields


def tone(choice: str) -> dict[str, Any]:
    return control("tone", "choices", [choice])


LABEL_STUDIO = [
    task(
        "c1",
        annotation(7, tone("Polite"), control("stars", "rating", 5)),
        annotation({"id": 8, "email": "ben@example.org"}, tone("Rude"), control("why", "text", ["Sighs."])),
    ),
    task("c2", annotation(7, tone("No reply"), lead_time=90_000.0), annotation(8, was_cancelled=True)),
]


def minimal(chat: str, by: Any, **answers: Any) -> dict[str, Any]:
    """A record of Label Studio's JSON-MIN."""
    times = {"created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:05:00Z", "lead_time": 12.5}
    return {"id": 11, "chat_id": chat, "annotator": by, "annotation_id": 1, **times, **answers}


LABEL_STUDIO_MIN = [
    minimal("c1", 7, tone="Polite", stars=[{"rating": 5}], why="Warm."),
    minimal("c1", "ben@example.org", tone={"choices": ["Rude", "Cold"]}),
]


def record(chat: str, **fields: Any) -> dict[str, Any]:
    """A record of Argilla, without responses."""
    rest = {"fields": {"chat": "…"}, "metadata": {"chat": {"key": chat}}, "suggestions": {}, "vectors": {}}
    return {"id": chat, **rest, "_server_id": None} | fields


def nested(value: Any, by: str = "9f1c", **fields: Any) -> dict[str, Any]:
    return {"value": value, "user_id": by} | fields


ARGILLA_NESTED = [
    record("c1", responses={"tone": [nested("Polite"), nested("Rude", "b")], "why": [nested("Warm.")]}),
    record("c2", responses={"stars": [nested(5, status="submitted"), nested(1, "b", status="discarded")]}),
]
_BARE = {"id": "c1", "chat": "…", "_server_id": None}
ARGILLA_FLAT = [
    _BARE
    | {
        "tone.responses": ["Polite", "Rude", "Cold"],
        "tone.responses.users": ["9f1c", "b", "c"],
        "tone.responses.status": ["submitted", "draft", "discarded"],
        "why.responses": ["Warm."],
        "why.responses.users": ["9f1c"],
        "why.responses.status": ["submitted"],
        "tone.suggestion": None,
    },
    _BARE | {"id": "c2", "tone.responses": None},
]
ARGILLA_LIST = [
    record(
        "uuid-1",
        external_id="c1",
        responses=[
            {
                "user_id": "9f1c",
                "values": {"tone": {"value": "Polite"}, "stars": {"value": 5}, "why": {"value": "Warm."}},
                "status": "submitted",
                "inserted_at": "2026-03-01T10:00:00",
                "updated_at": "2026-03-01T10:05:00",
            },
            {"user_id": "b", "values": None, "status": "discarded"},
        ],
    )
]
