"""More judges beside the one of `compared`, with known answers, calls and prices."""

import hashlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import Judge
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ModelCall, Run, RunChat, Unit, UnitCall, Verdict
from tests.factories.compared_runs import HUMAN, SPLITS, Compared

Says = Callable[[str, int], bool | None]


def perfect(key: str, n: int) -> bool:
    return HUMAN[key](n)


def contrary(key: str, n: int) -> bool:
    return not HUMAN[key](n)


def on_first(chats: int) -> Says:
    """Right on the first chats, refused on the others."""
    return lambda key, n: HUMAN[key](n) if n <= chats else None


def judged(
    compared: Compared, name: str, says: Says, *, engine: str = "", purpose: str = "evaluation"
) -> Run:
    """A finished run over all chats and criteria; where it says None it was refused."""
    config = {"model": "modest-1"} if engine else {}
    fingerprint = hashlib.sha256(name.encode()).hexdigest()
    judge = Judge.objects.create(fingerprint=fingerprint, name=name, engine=engine, config=config)
    now = timezone.now()
    run = Run.objects.create(
        judge=judge,
        chat_set=compared.chat_set,
        purpose=purpose,
        state=Run.State.DONE,
        finished_at=now,
    )
    members = list(compared.chat_set.members.select_related("chat"))
    RunChat.objects.bulk_create(
        RunChat(run=run, chat=member.chat, split=SPLITS[member.position % 4]) for member in members
    )
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat=member.chat,
            criterion=criterion,
            state=Verdict.State.REFUSED if said is None else Verdict.State.READ,
            value=said,
            stored_at=now,
        )
        for member in members
        for criterion in compared.criteria
        for said in [says(criterion.key, member.position)]
    )
    return run


def called(
    compared: Compared, run: Run, *, price: Decimal | None, latencies: tuple[int, ...] = (100,)
) -> None:
    """One call a chat, that asks all criteria together; `latencies` in turn."""
    for criterion in compared.criteria:
        run.judge.prompts.create(
            criterion=criterion,
            criterion_version=criterion.versions.get(),
            prompt_version=PromptVersion.objects.create(
                criterion=criterion, number=run.pk, text="Judge.", content_hash=f"p{run.pk}"
            ),
            group=0,
        )
    for place, chat in enumerate(run.run_chats.values_list("chat_id", flat=True)):
        unit = Unit.objects.create(run=run, chat_id=chat, group=0, state=Unit.State.DONE)
        call = ModelCall.objects.create(
            key=f"{run.pk}-{place}",
            role="direct",
            settings={},
            parts=[],
            state=ModelCall.State.ANSWERED,
            prompt_tokens=1000,
            completion_tokens=100,
            cost_usd=price,
            latency_ms=latencies[place % len(latencies)],
        )
        UnitCall.objects.create(unit=unit, call=call, role="direct", step=0, reused=place % 2 == 1)


def league_url(compared: Compared, *runs: Run, split: str = "", name: str = "alignment:league") -> str:
    query: dict[str, Any] = {"run": [run.pk for run in runs]}
    if split:
        query["split"] = split
    return reverse(name, args=[compared.chat_set.pk], query=query)


def document(client: Client, compared: Compared, *runs: Run, split: str = "") -> dict[str, Any]:
    response = client.get(league_url(compared, *runs, split=split, name="api_set_league"))
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def context(client: Client, compared: Compared, *runs: Run, split: str = "") -> Any:
    response = client.get(league_url(compared, *runs, split=split))
    assert response.status_code == 200
    return response.context
