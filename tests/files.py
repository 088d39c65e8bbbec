"""Import files and commands in tests."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


@dataclass(frozen=True)
class Answer:
    """What a command said with --json."""

    document: dict[str, Any]
    notes: str


def write_jsonl(path: Path, *rows: Any) -> Path:
    """A file of one JSON object a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_json(path: Path, document: Any) -> Path:
    """A JSON document, indented as people write it."""
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def run(command: str, *args: Any) -> Answer:
    """A command's JSON answer and what it said on stderr."""
    out, err = io.StringIO(), io.StringIO()
    call_command(command, *map(str, args), "--json", stdout=out, stderr=err)
    return Answer(json.loads(out.getvalue()), err.getvalue())


def refused(command: str, *args: Any) -> str:
    """The one line with which a command refuses its input, exit 2."""
    with pytest.raises(CommandError) as caught:
        call_command(command, *map(str, args), stdout=io.StringIO(), stderr=io.StringIO())
    assert caught.value.returncode == 2
    message = str(caught.value)
    assert "\n" not in message
    return message


def chat(external_id: str = "c1", *texts: str, **fields: Any) -> dict[str, Any]:
    """A chat line; the user and the assistant take turns."""
    said = texts or (f"Where is my order {external_id}?", "On its way.")
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return {"id": external_id, "messages": messages} | fields


def label(chat_id: str = "c1", criterion: str = "polite", **fields: Any) -> dict[str, Any]:
    """A label line."""
    return {"chat_id": chat_id, "criterion": criterion, "rater": "mara", "value": True} | fields


def verdict(chat_id: str = "c1", criterion: str = "polite", **fields: Any) -> dict[str, Any]:
    """A verdict line."""
    return {"chat_id": chat_id, "criterion": criterion, "judge": "judge-a", "value": True} | fields


def decision(chat_id: str = "c1", criterion: str = "polite", **fields: Any) -> dict[str, Any]:
    """An adjudication line."""
    line = {
        "chat_id": chat_id,
        "criterion": criterion,
        "adjudicated_by": "Ines",
        "value": True,
        "reason": "m2.",
    }
    return line | fields


def rubric(*criteria: dict[str, Any], name: str = "Support") -> dict[str, Any]:
    """A rubric document with one dimension."""
    return {
        "name": name,
        "dimensions": [{"key": "compliance", "name": "Compliance"}],
        "criteria": list(criteria),
    }


def criterion(key: str = "polite", **fields: Any) -> dict[str, Any]:
    """A criterion of a rubric document."""
    texts = {"question": f"Is {key} so?", "definition": f"True when {key}."}
    return {"key": key, "dimension": "compliance", "tier": "simple"} | texts | fields
