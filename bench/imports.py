"""Importing chats into SQLite: how fast, and how much more memory a longer file takes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Figure, peak_mb, timed
from bench._files import chat_lines, write_lines
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat

FEW, MANY = 10_000, 40_000
CHATS_A_SECOND = 3000.0
GROWTH_MB = 16.0  # the larger file is some 36 MB larger


def figures() -> Iterator[Figure]:
    """Import a small file, then one four times as long."""
    with tempfile.TemporaryDirectory() as folder:
        few = write_lines(Path(folder) / "few.jsonl", chat_lines(FEW, prefix="few-", seed=1))
        many = write_lines(Path(folder) / "many.jsonl", chat_lines(MANY, prefix="many-", seed=2))
        chats_import(path=few)
        before = peak_mb()
        spent = timed(lambda: chats_import(path=many))
    if (stored := Chat.objects.count()) != FEW + MANY:
        raise RuntimeError(f"{stored} chats stored, not {FEW + MANY}")
    name = f"import of {MANY:,} chats into SQLite"
    yield Figure(f"{name}, clock", MANY / spent.wall, CHATS_A_SECOND, "chats/s", floor=True)
    yield Figure(f"{name}, CPU", MANY / spent.cpu, CHATS_A_SECOND, "chats/s", floor=True)
    yield Figure(f"peak memory, {MANY:,} chats against {FEW:,}", peak_mb() - before, GROWTH_MB, "MB more")
