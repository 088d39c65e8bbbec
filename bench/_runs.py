"""Judge runs to be measured, and the same prompts through a bare AsyncOpenAI loop."""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, DefaultAioHttpClient

from bench import peak_mb
from bench._endpoint import MODEL
from bench._files import chat_lines, rubric, write_lines
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Run
from evaluation.prompts.core import reasoning_messages
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute
from evaluation.runs.worker.plan import plan_load
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat, ChatSet
from labeling.models.rubric import Rubric
from labeling.rubric.services.rubric import rubric_import

KEYS = ("polite", "correct", "short", "complete", "careful")


def plan_run(units: int, engine: Any) -> int:
    """A set of new chats and a run over it, every criterion a unit of its own; returns the run's id."""
    judge = JudgeSpec(engine=engine, grouping="criterion")
    run = run_start(chat_set=new_set(units), judge=judge, run=RunChoice(), endpoint=current_endpoint())
    return run.pk


def new_set(units: int) -> ChatSet:
    """New chats, as many as make so many units of one criterion."""
    number = Chat.objects.count()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not Rubric.objects.exists():
            (folder / "rubric.json").write_text(json.dumps(rubric(KEYS)), encoding="utf-8")
            rubric_import(path=folder / "rubric.json", articles_set=lambda criterion, keys: False)
        lines = chat_lines(units // len(KEYS), prefix=f"from-{number}-", seed=number)
        chats_import(path=write_lines(folder / "chats.jsonl", lines), set_name=f"set {number}")
    return ChatSet.objects.get(name=f"set {number}")


def judge_run(run: int) -> dict[str, float]:
    """CPU seconds of a run from its plan to its end, and this process's peak memory."""
    row = Run.objects.select_related("judge").get(pk=run)
    before = time.process_time()
    ended = run_execute(row, on_unit=lambda failed: None)
    if ended.state != Run.State.DONE:
        raise RuntimeError(f"{ended.state}: {ended.error}")
    return {"cpu": time.process_time() - before, "peak_mb": peak_mb()}


def bare_loop(run: int, slots: int) -> dict[str, float]:
    """The same for a planned run's prompts through AsyncOpenAI on the same transport, with nothing kept."""
    bodies = _bodies(run)

    async def loop() -> None:
        free = asyncio.Semaphore(slots)
        async with AsyncOpenAI(max_retries=0, http_client=DefaultAioHttpClient()) as client:

            async def one(body: dict[str, Any]) -> None:
                async with free:
                    await client.chat.completions.create(**body)

            await asyncio.gather(*(one(body) for body in bodies))

    before = time.process_time()
    asyncio.run(loop())
    return {"cpu": time.process_time() - before, "peak_mb": peak_mb()}


def _bodies(run: int) -> list[dict[str, Any]]:
    """The requests of a run of engine direct, as the gateway would send them."""
    row = Run.objects.select_related("judge").get(pk=run)
    plan = plan_load(row)
    bodies = []
    for unit in row.units.select_related("chat").iterator(500):
        group = plan.groups[unit.group]
        messages = reasoning_messages(
            role="direct",
            chat=core_chat(unit.chat),
            criteria=group.criteria,
            setup=group.setup,
            fence_secret=plan.fence_secret,
        )
        texts = [{"role": message.role, "content": message.text} for message in messages]
        bodies.append({"model": MODEL, "messages": texts, "temperature": 0.0, "max_tokens": 500})
    return bodies
