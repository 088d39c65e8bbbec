"""What the page of one run shows: how far it is, what went wrong, what was asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from evaluation.models.runs import Attempt, Batch, Run, Unit, Verdict, WorkerLease
from evaluation.runs.queries.redact_errors import kind_alone, may_read_errors
from labeling.models.people import User

# What the outcome's name leaves open.
NOTES = {
    Attempt.Outcome.TIMEOUT: "may have been billed without an answer",
    Attempt.Outcome.REFUSED: "by the model or the endpoint's filter",
    Attempt.Outcome.BAD_REQUEST: "by the endpoint, as a request that it does not take",
}
# A free worker answers its bell at once; planning a big run takes it a moment more.
ANSWERED_WITHIN = timedelta(seconds=10)
REASONS = {
    Verdict.State.UNPARSED: "The answer holds no verdict that could be read.",
    Verdict.State.REFUSED: "The model or the endpoint's filter refused.",
    Verdict.State.CUT_OFF: "The answer ended at its limit, twice; it is not read.",
    Verdict.State.TOO_LONG: "The chat does not fit the model's context; it is never shortened.",
    Verdict.State.FAILED: "No usable reply after retries; resume asks again.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How requests ended, with their number; `note` is '' where nothing has to be said."""

    name: str
    requests: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class MissingVerdicts:
    """Verdicts without an answer, by why."""

    state: str
    verdicts: int
    reason: str


def run_outcomes(run: Run) -> list[Outcome]:
    """Requests by how they ended, most frequent first; one query."""
    counts = dict(
        Attempt.objects.filter(run=run).values_list("outcome").annotate(n=Count("id")).order_by("-n")
    )
    return [
        Outcome(
            Attempt.Outcome(outcome).label,
            number,
            NOTES.get(Attempt.Outcome(outcome), ""),
        )
        for outcome, number in counts.items()
    ]


def run_missing(run: Run) -> list[MissingVerdicts]:
    """Verdicts without an answer; one query."""
    rows = Verdict.objects.filter(run=run).exclude(state=Verdict.State.READ)
    counts = dict(rows.values_list("state").annotate(n=Count("id")).order_by("-n"))
    return [MissingVerdicts(state, number, REASONS[Verdict.State(state)]) for state, number in counts.items()]


def run_failures(run: Run, *, user: User) -> list[tuple[str, int]]:
    """The reasons of failed units with their number, most frequent first, as far as the user is told."""
    failed = Unit.objects.filter(run=run, state=Unit.State.FAILED)
    rows = failed.values_list("error").annotate(n=Count("id")).order_by("-n", "error")
    whole, counts = may_read_errors(run, user=user), Counter[str]()
    for error, number in rows[:5]:
        counts[in_words(error if whole else kind_alone(error)) or "No reason given"] += number
    return counts.most_common()


def in_words(error: str) -> str:
    """An error line with the outcome it begins with in words.

    >>> in_words("server_error: HTTP 500")
    'Server error: HTTP 500'
    """
    kind, colon, rest = error.partition(":")
    name = Attempt.Outcome(kind).label if kind in Attempt.Outcome.values else kind
    return f"{name[:1].upper()}{name[1:]}{colon}{rest}"


def run_batches(run: Run, *, user: User) -> list[Batch]:
    """The files of requests at the endpoint's Batch API, oldest first; why one failed if the user is told."""
    batches = list(run.batches.order_by("id")) if run.mode == Run.Mode.BATCH else []
    if batches and not may_read_errors(run, user=user):
        for batch in batches:
            batch.error = ""  # a code of the endpoint's
    return batches


def waits_for(run: Run, *, workers: int, batches: Sequence[Batch]) -> str:
    """What a running run that none of the `workers` is on waits for; '' for any other.

    `batches`: answers of the Batch API; `turn`: a worker that is rung for or on another run; `worker`: any.
    """
    if run.state != Run.State.RUNNING or workers:
        return ""
    if any(batch.finished_at is None for batch in batches):
        return "batches"
    now = timezone.now()
    if run.rung_at and run.rung_at > now - ANSWERED_WITHIN:
        return "turn"
    return "turn" if WorkerLease.objects.filter(expires_at__gte=now).exists() else "worker"


def shares(run: Run) -> dict[str, float | None]:
    """How much of the prompts repeated, and how much the endpoint said it had cached."""
    return {
        "repeated": run.repeated_chars / run.prompt_chars if run.prompt_chars else None,
        "cached": run.cached_tokens / run.prompt_tokens if run.prompt_tokens else None,
    }


def next_step(run: Run) -> str:
    """What a person may do about a run that stands still or ended with failures; '' where nothing is due."""
    if run.state == Run.State.DONE_WITH_FAILURES:
        return "Resume asks once more for what failed; what was answered is not paid again."
    if run.state != Run.State.PAUSED:
        return ""
    error = run.error.lower()
    for words, step in _STEPS:
        if any(word in error for word in words):
            return step
    return "Resume goes on from here; nothing that was answered is asked again."


_STEPS = (
    (("lace_prices",), "Name the model's price in that file, restart the worker, then resume."),
    (
        ("budget",),
        "Resume with a larger budget; nothing that was answered is paid again.",
    ),
    (("401", "403", "api key", "key"), "Check OPENAI_API_KEY, restart the worker, then resume."),
    (
        ("404", "model"),
        "Check the model's name in the judge profile and start a new run; this judge keeps its own.",
    ),
    (
        ("another endpoint", "settings name"),
        "Set OPENAI_BASE_URL to the endpoint of this judge again, then resume.",
    ),
    (
        ("429", "rate"),
        "The endpoint's limit is reached: wait, or lower LACE_REQUESTS_PER_MINUTE, then resume.",
    ),
    (
        ("reach", "connect", "timed out", "timeout"),
        "See whether the endpoint answers (manage.py healthcheck), then resume.",
    ),
)
