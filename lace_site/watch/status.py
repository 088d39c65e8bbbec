"""What the status page shows: read at once, with a fixed number of queries."""

import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from common.disk import database_bytes
from common.queue import QueueState, queue_states
from evaluation.call_counts.queries import CallSum, call_totals
from evaluation.core.types import ModelAt
from evaluation.gateway.endpoints import endpoint_name
from evaluation.gateway.throttle.rules import State
from evaluation.gateway.throttle.waits import endpoint_states
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.outbox import WebhookEndpoint
from evaluation.models.runs import Attempt, Run, WorkerHeartbeat
from evaluation.runs.queries.stuck import StuckRun, stuck_runs
from evaluation.runs.queries.workers import HEARD_WITHIN, queue_workers
from labeling.people.queries.mail import MailState, mail_state
from lace_site.health import site_status
from lace_site.watch.collector import QUEUES, volumes

SHOWN_FOR = timedelta(days=30)
ERRORS_OF = timedelta(days=7)
MOST_ROWS = 20
Outcome = Attempt.Outcome
ANSWERS = frozenset({Outcome.ANSWERED, Outcome.REFUSED, Outcome.CUT_OFF, Outcome.TOO_LONG})
NO_ERRORS = ANSWERS | {Outcome.CANCELLED, Outcome.SENT}
# What a worker does, by the end of the task's name.
WORDS = {
    "process_units": "judges run",
    "test_model": "tests a model",
    "send_webhooks": "sends to webhook",
    "sweep": "looks for work",
    "nightly": "does the nightly work",
    "suggest": "asks for a suggestion",
    "draft_definition": "drafts a definition",
    "give_topics": "gives topics",
    "train": "trains a baseline",
    "refresh_report": "computes a report",
    "make_archive": "makes an archive",
    "count_experiment": "counts experiment",
    "find_issues": "searches issues",
    "name_issue": "names an issue",
    "check_import": "checks an import",
    "store_import": "stores an import",
    "undo_import": "takes an import back",
}
NUMBERED = frozenset({"process_units", "send_webhooks", "count_experiment"})


@dataclass(frozen=True, slots=True)
class Job:
    """A task in work: words, the run it judges, and since when."""

    words: str
    run: int | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker: its last heartbeat, and what it works on."""

    row: WorkerHeartbeat
    alive: bool
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue: living workers, and the messages that wait; no state where the broker cannot say."""

    name: str
    alive: int
    state: QueueState | None


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """A model at an endpoint: calls, the last answer, the last error, and whether calls wait."""

    name: str
    address: str
    model: str
    calls: int
    answered_at: datetime | None
    failed_at: datetime | None
    error: str
    waits: int
    failing: bool


@dataclass(frozen=True, slots=True)
class Volume:
    """A disk: what lies there, and its space in bytes."""

    name: str
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Status:
    """The whole page. `troubles`: a sentence on each part that is not well."""

    read_at: datetime
    version: str
    troubles: tuple[str, ...]
    workers: list[WorkerRow]
    queues: list[QueueRow]
    endpoints: list[EndpointRow]
    stuck: list[StuckRun]
    failed_runs: list[Run]
    webhooks: list[WebhookEndpoint]
    mail: MailState
    volumes: list[Volume]
    database: int


def site_now() -> Status:
    """Read everything."""
    heartbeats = list(WorkerHeartbeat.objects.exclude(queues=[]).order_by("name"))
    return Status(
        read_at=timezone.now(),
        version=settings.SOFTWARE["version"],
        troubles=site_status(),
        workers=[_worker(row) for row in heartbeats],
        queues=_queues(heartbeats),
        endpoints=_endpoints(),
        stuck=stuck_runs()[:MOST_ROWS],
        failed_runs=_failed_runs(),
        webhooks=list(WebhookEndpoint.objects.exclude(failing_since=None, stopped_at=None)[:MOST_ROWS]),
        mail=mail_state(),
        volumes=list(_volumes()),
        database=database_bytes(),
    )


def _worker(row: WorkerHeartbeat) -> WorkerRow:
    alive = row.beat_at >= timezone.now() - HEARD_WITHIN
    return WorkerRow(row, alive, tuple(_job(task) for task in row.doing or ()) if alive else ())


def _job(task: dict[str, Any]) -> Job:
    name = str(task.get("task", "")).rpartition(".")[2]
    number, since = task.get("id"), task.get("since")
    words = WORDS.get(name, name.replace("_", " "))
    run = number if name == "process_units" else None
    if name in NUMBERED and run is None and number is not None:
        words = f"{words} {number}"
    return Job(words, run, datetime.fromtimestamp(since, UTC) if since else None)


def _queues(heartbeats: Sequence[WorkerHeartbeat]) -> list[QueueRow]:
    states = queue_states(QUEUES)
    among = list(heartbeats)
    return [QueueRow(name, queue_workers(name, among=among).alive, states.get(name)) for name in QUEUES]


def _failed_runs() -> list[Run]:
    """Return the latest runs that paused or ended with an error."""
    since = timezone.now() - ERRORS_OF
    rows = Run.objects.exclude(error="").exclude(state__in=(Run.State.RUNNING, Run.State.CANCELLED))
    moment = Greatest(
        Coalesce("finished_at", "created_at"), Coalesce(Max("units__finished_at"), "created_at")
    )
    recent = rows.filter(created_at__gt=since).order_by("-pk")[:MOST_ROWS]
    return list(Run.objects.filter(pk__in=[run.pk for run in recent]).annotate(at=moment).order_by("-at"))


def _volumes() -> Iterable[Volume]:
    for name, folder in volumes().items():
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        yield Volume(name, usage.free, usage.total)


# ---------- endpoints ----------


def _endpoints() -> list[EndpointRow]:
    """Return the models that were asked lately, the latest first."""
    since = timezone.now() - SHOWN_FOR
    by_model: dict[ModelAt, list[CallSum]] = {}
    for one in call_totals():
        by_model.setdefault(ModelAt(one.endpoint, one.model), []).append(one)
    lately = {at: sums for at, sums in by_model.items() if max(one.last_at for one in sums) > since}
    states = endpoint_states(models=lately, broker_url=settings.CELERY_BROKER_URL)
    names = dict(ConnectedEndpoint.objects.values_list("address", "name"))
    errors = _errors([one for sums in lately.values() for one in sums])
    ordered = sorted(lately.items(), key=lambda item: -max(one.last_at for one in item[1]).timestamp())
    return [
        _endpoint(at, sums, states.get(at), names.get(at.endpoint, ""), errors)
        for at, sums in ordered[:MOST_ROWS]
    ]


def _errors(sums: Sequence[CallSum]) -> dict[tuple[ModelAt, datetime], str]:
    """Return the words of the latest error of each kind; one query."""
    moments = [one.last_at for one in sums if one.outcome not in NO_ERRORS]
    rows = Attempt.objects.filter(ended_at__in=moments).values_list(
        "call__endpoint", "call__model", "ended_at", "outcome", "error"
    )
    return {
        (ModelAt(endpoint, model), at): error or str(Outcome(outcome).label)
        for endpoint, model, at, outcome, error in rows[:1000]
        if outcome not in NO_ERRORS and at is not None
    }


def _endpoint(
    at: ModelAt, sums: Sequence[CallSum], state: State | None, name: str, errors: dict[Any, str]
) -> EndpointRow:
    failed = max((one.last_at for one in sums if one.outcome not in NO_ERRORS), default=None)
    failing = state is not None and state.opened_at is not None
    due = 0.0 if state is None else (state.probe_at if failing else state.not_before)
    return EndpointRow(
        name=name or endpoint_name(at.endpoint),
        address=at.endpoint if name else "",
        model=at.model,
        calls=sum(one.calls for one in sums),
        answered_at=max((one.last_at for one in sums if one.outcome in ANSWERS), default=None),
        failed_at=failed,
        error=errors.get((at, failed), "") if failed else "",
        waits=max(0, round(due - time.time())),
        failing=failing,
    )
