"""Runs locust with `_locustfile.py`, in its own environment, and reads what it measured."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCUST = ROOT / ".venv-load/bin/locust"
SCENARIOS = ("sign-in", "rater", "author", "lead", "program")


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of the requests of one kind."""

    requests: int
    p50: float
    p95: float
    worst: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Times":
        """Of at least one request."""
        found = sorted(values)
        cuts = quantiles(found, n=20, method="inclusive") if len(found) > 1 else found * 19
        return cls(len(found), median(found), cuts[-1], found[-1])


@dataclass(frozen=True, slots=True)
class Result:
    """All requests of a crowd; `again` counts those sent again after a connection that was cut."""

    rows: list[tuple[str, str, float, float]]
    errors: list[dict[str, Any]]
    saved: list[str]
    runs: list[int]
    again: int

    def tell_errors(self, most: int = 10) -> None:
        """Print the first ones."""
        for error in self.errors[:most]:
            print(f"{error['scenario']}, {error['name']}: {error['error']} {error['text']}", file=sys.stderr)

    def scenarios(self, *, since: float) -> dict[str, Times]:
        """Times by scenario: from `since` on (s), when all are there; sign-ins from the start."""
        found: dict[str, list[float]] = defaultdict(list)
        for scenario, _, at, ms in self.rows:
            if at >= since or scenario == "sign-in":
                found[scenario].append(ms)
        return {name: Times.of(found[name]) for name in SCENARIOS if found[name]}

    def requests(self, *, since: float) -> dict[tuple[str, str], Times]:
        """Times by scenario and request."""
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for scenario, name, at, ms in self.rows:
            if at >= since or scenario == "sign-in":
                found[scenario, name].append(ms)
        return {key: Times.of(values) for key, values in sorted(found.items())}


def shares(users: int) -> dict[str, int]:
    """How many of each kind, one at least: of 25 users 20 raters, 3 authors, a lead and a program."""
    found = {
        "author": max(1, users * 3 // 25),
        "lead": max(1, users // 25),
        "program": max(1, users // 25),
    }
    return {"rater": max(1, users - sum(found.values())), **found}


class Crowd:
    """A running locust."""

    def __init__(
        self,
        folder: Path,
        *,
        url: str,
        plan: Mapping[str, Any],
        counts: Mapping[str, int],
        think: float,
        rate: float,
        seconds: float = 0.0,
        saves: int = 0,
        repeat: Sequence[int] = (),
    ) -> None:
        """Start it: `rate` users a second come; it ends after so many seconds or saved labels.

        Requests that are answered with a status in `repeat` are sent again; 0 is a connection that was cut.
        """
        if not LOCUST.exists():
            raise RuntimeError(f"{LOCUST} is not there: run make {LOCUST.parent.parent.name}/.installed")
        self.result, self.log = folder / "crowd.json", folder / "crowd.log"
        asked = {"counts": dict(counts), "think": think, "saves": saves, "repeat": repeat}
        file = folder / "plan.json"
        file.write_text(json.dumps({**plan, **asked, "result": str(self.result)}), encoding="utf-8")
        command = [str(LOCUST), "-f", str(ROOT / "bench/_locustfile.py"), "--headless", "--only-summary"]
        command += ["--users", str(sum(counts.values())), "--spawn-rate", str(rate), "--host", url]
        command += ["--run-time", f"{seconds:.0f}s"] if seconds else []
        # What fails is counted here, not by the exit code.
        command += ["--exit-code-on-error", "0", "--stop-timeout", "30", "--loglevel", "WARNING"]
        environment = os.environ | {"LACE_CROWD": str(file)}
        with self.log.open("wb") as log:
            self.running = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.running.poll() is not None

    def must_work(self) -> None:
        """Raise `RuntimeError` where it has ended by itself."""
        if self.over:
            raise RuntimeError("the crowd has gone")

    def kill(self) -> None:
        """End it at once, where the benchmark has failed."""
        self.running.kill()
        self.running.wait()

    def end(self, *, stop: bool = False, timeout: float | None = None) -> Result:
        """Wait for its end, or ask for it; what it measured."""
        if stop and not self.over:
            self.running.terminate()
        self.running.wait(timeout)
        if not self.result.exists():
            raise RuntimeError(f"locust wrote nothing: {self.log.read_text(errors='replace')[-2000:]}")
        found = json.loads(self.result.read_text(encoding="utf-8"))
        return Result(**found | {"rows": [tuple(row) for row in found["rows"]]})
