"""Judge runs against an endpoint of fixed latency, side by side with a bare AsyncOpenAI loop."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import django

from bench import peak_mb
from bench._endpoint import MODEL, Server
from bench._files import chat_lines, rubric, write_lines

FOLDER = Path(__file__).resolve().parent
FULL = bool(os.environ.get("LACE_BENCH_FULL"))
KEYS = ("polite", "correct", "short", "complete", "careful")
CALLS = {"direct": 1, "reflection": 2, "debate": 3}  # of one unit
BEHIND = 0.9  # of the bare loop's efficiency
CPU_MS, PEAK_MB, FLAT = 2.0, 150.0, 1.1


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement: so many calls, so many at once, each answered after `latency` seconds."""

    calls: int
    slots: int
    latency: float
    engine: str = "direct"
    bare: bool = False
    run: int = 0

    @property
    def name(self) -> str:
        who = "bare AsyncOpenAI" if self.bare else self.engine
        return f"{who}, {self.calls:,} calls, {self.slots} at once, {self.latency:g} s"


@dataclass(frozen=True, slots=True)
class Measured:
    """What it took: share of the ideal time from first request to last answer, CPU, peak memory."""

    efficiency: float
    cpu_ms: float
    peak_mb: float


def measured(load: Load, server: Server, database_url: str) -> Measured:
    """Plan the run in one process and work it off in another, whose CPU and memory are its own."""
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "bench",
        "LACE_REASONING_MODEL": MODEL,
        "LACE_MAX_IN_FLIGHT": str(load.slots),
    }
    run = _child("plan", load, environment)["run"]
    server.set(reset=True, latency=load.latency)
    spent = _child("work", replace(load, run=run), environment)
    counts = server.counts()
    if counts["requests"] != load.calls or counts["answered"] != load.calls:
        raise RuntimeError(f"{load.name}: {counts}")
    ideal = load.calls * load.latency / load.slots
    return Measured(ideal / counts["span"], spent["cpu"] / load.calls * 1000, spent["peak_mb"])


def _child(what: str, load: Load, environment: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.throughput", what, json.dumps(asdict(load))]
    ended = subprocess.run(
        command, env=environment, cwd=FOLDER.parent, stdout=subprocess.PIPE, check=True, text=True
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def plan(load: Load) -> dict[str, Any]:
    """A set of new chats and a run over it; every criterion is a unit of its own."""
    from evaluation.core.choice import JudgeChoice
    from evaluation.runner.plan import current_endpoint
    from evaluation.services.runs import RunChoice, run_start
    from labeling.models.chats import Chat, ChatSet
    from labeling.models.rubric import Rubric
    from labeling.services.chats import chats_import
    from labeling.services.rubric import rubric_import

    number = Chat.objects.count()
    chats = -(-load.calls // CALLS[load.engine] // len(KEYS))
    with tempfile.TemporaryDirectory() as name:
        if not Rubric.objects.exists():
            (Path(name) / "rubric.json").write_text(json.dumps(rubric(KEYS)), encoding="utf-8")
            rubric_import(path=Path(name) / "rubric.json", articles_set=lambda criterion, keys: False)
        lines = chat_lines(chats, prefix=f"from-{number}-", seed=number)
        chats_import(path=write_lines(Path(name) / "chats.jsonl", lines), set_name=f"set {number}")
    run = run_start(
        chat_set=ChatSet.objects.get(name=f"set {number}"),
        judge=JudgeChoice(engine=load.engine, grouping="criterion"),  # type: ignore[arg-type]
        run=RunChoice(),
        endpoint=current_endpoint(),
    )
    return {"run": run.pk}


def work(load: Load) -> dict[str, Any]:
    """Work the run off, or send its prompts by a bare loop."""
    spend = bare_loop(load) if load.bare else judge_run(load)
    return {"cpu": spend, "peak_mb": peak_mb()}


def judge_run(load: Load) -> float:
    """CPU seconds of a run from its plan to its end."""
    from evaluation.models.runs import Run
    from evaluation.runner.execute import run_execute

    run = Run.objects.select_related("judge").get(pk=load.run)
    before = time.process_time()
    ended = run_execute(run, on_unit=lambda failed: None)
    if ended.state != "done":
        raise RuntimeError(f"{ended.state}: {ended.error}")
    return time.process_time() - before


def bare_loop(load: Load) -> float:
    """CPU seconds of the same prompts through AsyncOpenAI on the same transport, and nothing kept."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    bodies = _bodies(load)

    async def loop() -> None:
        slots = asyncio.Semaphore(load.slots)
        async with AsyncOpenAI(max_retries=0, http_client=DefaultAioHttpClient()) as client:

            async def one(body: dict[str, Any]) -> None:
                async with slots:
                    await client.chat.completions.create(**body)

            await asyncio.gather(*(one(body) for body in bodies))

    before = time.process_time()
    asyncio.run(loop())
    return time.process_time() - before


def _bodies(load: Load) -> list[dict[str, Any]]:
    """The requests of a planned run of engine direct, as the gateway would send them."""
    from evaluation.core.prompts import reasoning_messages
    from evaluation.models.runs import Run
    from evaluation.runner.plan import plan_load
    from evaluation.runner.units import core_chat

    run = Run.objects.select_related("judge").get(pk=load.run)
    planned = plan_load(run)
    bodies = []
    for unit in run.units.select_related("chat").iterator(500):
        group = planned.groups[unit.group]
        messages = reasoning_messages(
            role="direct",
            chat=core_chat(unit.chat),
            criteria=group.criteria,
            setup=group.setup,
            fence_secret=planned.fence_secret,
        )
        texts = [{"role": message.role, "content": message.text} for message in messages]
        bodies.append({"model": MODEL, "messages": texts, "temperature": 0.0, "max_tokens": 500})
    return bodies


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    django.setup()
    print(json.dumps({"plan": plan, "work": work}[sys.argv[1]](Load(**json.loads(sys.argv[2])))))
