"""The recent speed of a judge's endpoint, in calls per second."""

from evaluation.models.judges import Judge
from evaluation.models.runs import Attempt, Run
from evaluation.runs.core.pace import busy_seconds
from evaluation.runs.queries.costs import PAID

RUNS = 5  # the latest similar runs
ATTEMPTS = 400  # the latest of each run
FEWEST = 10  # answers; fewer give no reliable pace


def calls_a_second(judge: Judge, *, max_in_flight: int | None = None) -> float | None:
    """Return answers per second in the latest runs of the same engine, model, endpoint and calls in flight.

    None for too few answers. At most RUNS + 1 queries. Answers of the Batch API do not count.
    """
    config = judge.config
    alike = Run.objects.filter(
        judge__engine=judge.engine,
        judge__config__model=config.get("model"),
        judge__config__endpoint=config.get("endpoint"),
        mode=Run.Mode.LIVE,
        calls__gt=0,
    )
    if max_in_flight:
        alike = alike.filter(options__max_in_flight=max_in_flight)
    else:
        alike = alike.filter(options__max_in_flight__isnull=True)
    spans, answers = [], 0
    for run in alike.order_by("-id").values_list("pk", flat=True)[:RUNS]:
        rows = Attempt.objects.filter(run=run).order_by("-id")
        for sent, ended, outcome in rows.values_list("sent_at", "ended_at", "outcome")[:ATTEMPTS]:
            if ended is not None:
                spans.append((sent, ended))
                answers += outcome in PAID
    seconds = busy_seconds(spans)
    return answers / seconds if answers >= FEWEST and seconds else None
