"""A process that lets calls through a shared limit: `python -m tests.factories.limited_worker JSON`.

The JSON names `calls`, `in_flight`, `requests_per_minute` and `broker_url`; written is when each was let in.
"""

import asyncio
import json
import sys
import time
from typing import Any

import django

from evaluation.gateway.replies import Outcome

ENDPOINT, MODEL = "http://limited/v1", "limited-model"
ANSWER = Outcome(kind="answered", status=200, prompt_tokens=50, completion_tokens=50)


async def let_in(options: dict[str, Any]) -> list[float]:
    """Unix seconds of each admission."""
    from evaluation.gateway.throttle import Limits, throttle_for

    times: list[float] = []
    todo = iter(range(options["calls"]))
    async with throttle_for(
        endpoint=ENDPOINT,
        model=MODEL,
        max_in_flight=options["in_flight"],
        limits=Limits(requests_per_minute=options["requests_per_minute"]),
        broker_url=options["broker_url"],
    ) as throttle:

        async def caller() -> None:
            for _ in todo:
                await throttle.enter(tokens=100)
                times.append(time.time())
                await asyncio.sleep(0.05)
                throttle.seen(ANSWER, call="")
                throttle.leave()

        await asyncio.gather(*(caller() for _ in range(options["in_flight"])))
    return times


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(asyncio.run(let_in(json.loads(sys.argv[1])))))
