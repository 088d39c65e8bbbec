"""Runs at the vendors' endpoints: what they judged, what was learned, and the table of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.types import Engine
from evaluation.endpoints.services import model_set
from evaluation.engines.core.roles import engine_roles
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.judges import EndpointModel
from evaluation.models.runs import Attempt, ModelCall, Run, Verdict
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute
from labeling.models.chats import ChatSet
from tests.factories.runs import verdicts_of
from tests.factories.vendor_shapes import Values
from tests.factories.vendors import Naming, Vendor, leaked, planted, vendor_endpoint

ENGINES: tuple[Engine, ...] = ("direct", "reflection", "debate")
Answers = Mapping[tuple[str, str], tuple[str, bool | None]]

_SWITCHES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "effort": "effort",
    "logprobs": "probabilities",
    "seed": "seed",
}
TABLE_HEAD = (
    "| endpoint and model | learned, known by address and name | learned under an unknown name | thinking |",
    "| --- | --- | --- | --- |",
)


@dataclass(frozen=True)
class Swept:
    """What the runs of all engines at one vendor's endpoint gave.

    `answers` are state and value by engine, chat and criterion. Of `total` verdicts `right` are the planted
    ones, and the formatter read `by_formatter`. `shown` calls hold thoughts; `thoughts_sent`: one came back
    in a request. `refused` are the refused ones of all `requests`.
    """

    states: Mapping[Engine, tuple[str, int]]
    answers: Mapping[Engine, Answers]
    quotes: int
    quotes_verified: int
    total: int
    right: int
    by_formatter: int
    learned: Mapping[str, Any]
    shown: int
    thoughts_sent: bool
    refused: int
    requests: int


def swept(vendor: Vendor, naming: Naming, chat_set: ChatSet, engines: Sequence[Engine] = ENGINES) -> Swept:
    """Judge the set by these engines at the vendor's endpoint.

    Under an unknown name every setting that can be refused is chosen.
    """
    with vendor_endpoint(vendor, naming) as endpoint:
        address, model = current_endpoint().id, vendor.model_name(naming)
        if vendor.workspace:
            model_set(endpoint=address, model=model, changes=vendor.workspace)
        runs = {engine: _judged(chat_set, engine, naming) for engine in engines}
        seen = endpoint.seen
    row = EndpointModel.objects.filter(endpoint=address, model=model).first()
    verdicts = list(Verdict.objects.filter(run__in=runs.values()))
    answers = {engine: verdicts_of(run) for engine, run in runs.items()}
    right = wanted(chat_set.members.count())
    return Swept(
        states={engine: (run.state, run.units_failed) for engine, run in runs.items()},
        answers=answers,
        quotes=sum(verdict.quotes for verdict in verdicts),
        quotes_verified=sum(verdict.quotes_verified for verdict in verdicts),
        by_formatter=sum(verdict.read_by == Verdict.ReadBy.FORMATTER for verdict in verdicts),
        total=len(verdicts),
        right=sum(
            found.get(place) == answer for found in answers.values() for place, answer in right.items()
        ),
        learned=row.learned if row else {},
        shown=ModelCall.objects.filter(endpoint=address, model=model).exclude(thinking="").count(),
        thoughts_sent=leaked(seen),
        refused=Attempt.objects.filter(
            run__in=runs.values(), outcome__in=["bad_request", "too_long"]
        ).count(),
        requests=len(seen),
    )


def wanted(chats: int) -> Answers:
    """The planted verdicts on the first chats."""
    return {(f"c{n}", key): ("read", value) for n in range(chats) for key, value in planted(n).items()}


def wrong(found: Answers, chats: int) -> Values:
    """Verdicts that were read and are not the planted ones."""
    right = wanted(chats)
    read = {place: answer for place, answer in found.items() if answer[0] == "read"}
    return {f"{chat} {key}": read[chat, key][1] for chat, key in read if read[chat, key] != right[chat, key]}


def table_row(vendor: Vendor, learned: Mapping[Naming, Mapping[str, Any]]) -> str:
    """One line of the table of what was learned."""
    cells = (
        f"{vendor.name}, `{vendor.model}`",
        learned_words(learned["known"]),
        learned_words(learned["unknown"]),
        vendor.thinking,
    )
    return f"| {' | '.join(cells)} |"


def learned_words(learned: Mapping[str, Any]) -> str:
    """What was learned, in words.

    Examples
    --------
    >>> learned_words({"token_limit": "max_tokens", "effort": False, "logprobs": False})
    '`max_tokens`; no effort, probabilities'
    """
    words = [f"`{learned['token_limit']}`"] if "token_limit" in learned else []
    if left_out := [name for field, name in _SWITCHES.items() if learned.get(field) is False]:
        words.append(f"no {', '.join(left_out)}")
    if "efforts" in learned:
        words.append(f"efforts {', '.join(learned['efforts'])}")
    if "schema" in learned:
        words.append(f"`{learned['schema']}`")
    if "context" in learned:
        words.append(f"context {learned['context']:,}")
    if learned.get("reasons"):
        words.append("reasons")
    return "; ".join(words) or "nothing"


def _judged(chat_set: ChatSet, engine: Engine, naming: Naming) -> Run:
    judge = JudgeSpec(engine)
    if naming == "unknown":
        judge = JudgeSpec(engine, efforts=dict.fromkeys(engine_roles(engine), "xhigh"), logprobs=True)
    run = run_start(chat_set=chat_set, judge=judge, run=RunChoice(), endpoint=current_endpoint())
    return run_execute(run, on_unit=lambda failed: None)
