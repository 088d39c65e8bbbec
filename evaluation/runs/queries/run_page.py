"""The content of a run's page: progress, problems, requests."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from common.problems import OPERATOR
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.runs import Attempt, Batch, Run, Unit, Verdict, error_in_words
from evaluation.runs.queries.hold_ups import just_enqueued
from evaluation.runs.queries.redact_errors import kind_alone, may_read_errors
from evaluation.runs.queries.workers import judge_workers
from labeling.models.people import User

# Notes on outcomes whose name says too little.
NOTES = {
    Attempt.Outcome.TIMEOUT: "may have been billed without an answer",
    Attempt.Outcome.CONNECTION: "may have been billed if it broke off after the request left",
    Attempt.Outcome.REFUSED: "by the model or the endpoint's filter",
    Attempt.Outcome.BAD_REQUEST: "the endpoint does not accept this request",
}
REASONS = {
    Verdict.State.UNPARSED: "The answer has no readable verdict.",
    Verdict.State.REFUSED: "The model or the endpoint's filter refused.",
    Verdict.State.CUT_OFF: "The answer reached its token limit twice and is not read.",
    Verdict.State.TOO_LONG: "The chat exceeds the model's context. Chats are never shortened.",
    Verdict.State.FAILED: "No usable reply after retries. Resume the run to retry.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome of requests, with their number; `note` may be ""."""

    name: str
    requests: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class MissingVerdicts:
    """Verdicts without an answer, by reason."""

    state: str
    verdicts: int
    reason: str


def run_outcomes(run: Run) -> list[Outcome]:
    """Return requests by outcome, the most frequent first; one query."""
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
    """Return verdicts without an answer; one query."""
    rows = Verdict.objects.filter(run=run).exclude(state=Verdict.State.READ)
    counts = dict(rows.values_list("state").annotate(n=Count("id")).order_by("-n"))
    return [MissingVerdicts(state, number, REASONS[Verdict.State(state)]) for state, number in counts.items()]


def run_failures(run: Run, *, user: User) -> list[tuple[str, int]]:
    """Return the reasons of failed units with their number, most frequent first, redacted for the user."""
    failed = Unit.objects.filter(run=run, state=Unit.State.FAILED)
    rows = failed.values_list("error").annotate(n=Count("id")).order_by("-n", "error")
    whole, counts = may_read_errors(run, user=user), Counter[str]()
    for error, number in rows[:5]:
        counts[in_words(error if whole else kind_alone(error)) or "No reason given"] += number
    return counts.most_common()


def in_words(error: str) -> str:
    """Return an error line as pages show it: the outcome in words, with a capital unless it is an address."""
    words = error_in_words(error)
    return words if "://" in words.partition(" ")[0] else f"{words[:1].upper()}{words[1:]}"


def run_batches(run: Run, *, user: User) -> list[Batch]:
    """Return the files of requests at the Batch API, oldest first, their errors redacted for the user."""
    batches = list(run.batches.order_by("id")) if run.mode == Run.Mode.BATCH else []
    if batches and not may_read_errors(run, user=user):
        for batch in batches:
            batch.error = ""  # a code of the endpoint's
    return batches


def waits_for(run: Run, *, workers: int, batches: Sequence[Batch]) -> str:
    """Return what a running run without workers waits for; "" for any other run.

    `batches`: answers of the Batch API. `turn`: workers are busy or already notified. `worker`: no worker
    runs, or none was heard of lately.
    """
    if run.state != Run.State.RUNNING or workers:
        return ""
    if any(batch.finished_at is None for batch in batches):
        return "batches"
    return "turn" if just_enqueued(run) or judge_workers().alive else "worker"


def shares(run: Run) -> dict[str, float | None]:
    """Return how much of the prompts repeated, and how much the endpoint reported as cached."""
    return {
        "repeated": run.repeated_chars / run.prompt_chars if run.prompt_chars else None,
        "cached": run.cached_tokens / run.prompt_tokens if run.prompt_tokens else None,
    }


def next_step(run: Run) -> str:
    """Return what the user can do about a paused or failed run; "" if no action is needed."""
    if run.state == Run.State.DONE_WITH_FAILURES:
        return "Resume to retry failed units. Stored answers are not paid for again."
    if run.state != Run.State.PAUSED:
        return ""
    error = run.error.lower()
    named = _connected_in(error)
    for words, step, of_connected in _STEPS:
        if any(word in error for word in words):
            return of_connected.format(named) if named and of_connected else step
    return "Resume to continue. Stored answers are not requested again."


def _connected_in(error: str) -> str:
    """Return the name of the connected endpoint whose address the error names; "" if none."""
    rows = ConnectedEndpoint.objects.values_list("name", "address")
    return next((name for name, address in rows if address.lower() in error), "")


# Words of an error → what to do, and what to do if a lead connected the endpoint: {} is its name.
_STEPS = (
    (
        ("another endpoint", "settings name", "server is set to", "endpoint's address"),
        f"Ask {OPERATOR} to set this judge's endpoint and restart the workers, then resume.",
        "",
    ),
    (
        ("price file", "lace_prices"),
        f"Ask {OPERATOR} to add the model's price and restart the workers, then resume.",
        "Edit the endpoint {} on the page Models: add the model's price. Then resume.",
    ),
    (
        ("budget",),
        "Resume with a larger budget. Stored answers are not paid for again.",
        "",
    ),
    (
        ("401", "403", "api key", "key"),
        f"Ask {OPERATOR} to check the endpoint's key and restart the workers, then resume.",
        "Edit the endpoint {} on the page Models: enter its key. Test the connection, then resume.",
    ),
    (
        ("404", "model"),
        "Correct the model's name in the judge profile and start a new run. This judge cannot change.",
        "",
    ),
    (
        ("429", "rate"),
        "The endpoint's rate limit is reached. Wait and resume; "
        f"{OPERATOR} can also set fewer requests a minute.",
        "The endpoint's rate limit is reached. Wait and resume. Lower limits of the endpoint {} on the page "
        "Models prevent it.",
    ),
    (
        ("reach", "connect", "timed out", "timeout"),
        "Check whether the endpoint answers (manage.py healthcheck), then resume.",
        "Test the endpoint {} on the page Models, then resume.",
    ),
)
