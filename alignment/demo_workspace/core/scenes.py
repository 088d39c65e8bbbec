"""Reads the demo's written scene pieces, and draws them so that no piece is used twice before all others."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Parts the turns of a piece; who speaks first depends on its kind.
TURN = "=>"
_SLOT = re.compile(r"(?<!\{)\{([a-z0-9]+)\}(?!\})")
_SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its article, whether that prescribes a procedure, and its pieces by kind."""

    key: str
    article: str
    procedure: bool
    pieces: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Scenes:
    """All written pieces: topics, pieces that fit any topic, values of slots, and the mix of faults."""

    topics: Sequence[Topic]
    shared: Mapping[str, Sequence[str]]
    slots: Mapping[str, Sequence[str]]
    mix: Mapping[str, Any]


def scenes_read(folder: Path) -> Scenes:
    """Read the Markdown files of a folder, one a topic, with `slots.json` and `mix.json`.

    Raises OSError or ValueError for a folder that is not the demo's.
    """
    topics, shared = [], {}
    for path in sorted(folder.glob("*.md")):
        head, pieces = _pieces(path.read_text(encoding="utf-8"))
        if path.stem == _SHARED:
            shared = pieces
        else:
            topics.append(Topic(path.stem, head["knowledge"], head["procedure"] == "yes", pieces))
    slots, mix = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("slots", "mix")
    )
    return Scenes(tuple(topics), shared, slots, mix)


def _pieces(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the head's fields, and the list items below each heading; an indented line goes on with one."""
    head: dict[str, str] = {}
    pieces: dict[str, list[str]] = {}
    kind = ""
    for line in text.splitlines():
        if line.startswith("## "):
            kind = line[3:].strip()
            pieces[kind] = []
        elif line.startswith("- "):
            pieces[kind].append(line[2:].strip())
        elif line.startswith("  "):
            pieces[kind][-1] += f" {line.strip()}"
        elif ":" in line and not kind:
            name, value = line.split(":", 1)
            head[name.strip()] = value.strip()
    return head, pieces


@dataclass(slots=True)
class Dice:
    """Seeded chance: the same seed and questions give the same answers, on every machine."""

    seed: int
    _random: random.Random = field(init=False)
    _bags: dict[str, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  invented data, no secret

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both included."""
        return self._random.randint(low, high)

    def weighted(self, shares: Mapping[str, float]) -> str:
        """Return one of the keys, with these weights."""
        return self._random.choices(list(shares), weights=list(shares.values()))[0]

    def draw(self, name: str, options: Sequence[str]) -> str:
        """Return one of the options; each comes once before any comes again. `name` names the bag."""
        if not self._bags.get(name):
            self._bags[name] = self._random.sample(range(len(options)), len(options))
        return options[self._bags[name].pop()]


def filled(text: str, values: Callable[[str], str]) -> str:
    """Return a text with its `{slots}` filled; doubled braces become single ones.

    Examples
    --------
    >>> filled("Hi {name}, {{code}}", lambda slot: slot.upper())
    'Hi NAME, {code}'
    """
    return _SLOT.sub(lambda match: values(match[1]), text).replace("{{", "{").replace("}}", "}")


def turns(piece: str) -> list[str]:
    """Return the turns of a piece.

    >>> turns("Which order? => BW-1 => Thanks.")
    ['Which order?', 'BW-1', 'Thanks.']
    """
    return [turn.strip() for turn in piece.split(TURN)]
