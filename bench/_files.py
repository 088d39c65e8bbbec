"""Invented files to import: as large as wanted, the same every time."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

WORDS = tuple(f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "st", "lle"))
MESSAGES = 10
MESSAGE_WORDS = 18
TEXTS = 5000  # different messages: drawing each word anew would take longer than the import


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """A JSON Lines file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
    return path


def chat_lines(count: int, *, prefix: str, seed: int) -> Iterable[dict[str, Any]]:
    """Chats of 10 messages and about 900 characters, on 20 topics."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=MESSAGE_WORDS)) for _ in range(TEXTS)]
    for n in range(count):
        messages = [
            {"role": "assistant" if turn % 2 else "user", "content": text}
            for turn, text in enumerate(draw.choices(texts, k=MESSAGES))
        ]
        yield {"id": f"{prefix}{n}", "topic": f"topic {n % 20}", "messages": messages}


def rubric(keys: Sequence[str]) -> dict[str, Any]:
    """A rubric of simple criteria in one dimension."""
    criteria = [
        {
            "key": key,
            "dimension": "all",
            "tier": "simple",
            "question": f"Is {key} so?",
            "definition": f"True when {key} is so.",
        }
        for key in keys
    ]
    return {"name": "Benchmark", "dimensions": [{"key": "all", "name": "All"}], "criteria": criteria}
