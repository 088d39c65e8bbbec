"""Runs, their plan, the model calls and the verdicts.

Keys without an index of their own (`db_index=False`) begin a constraint or another index of their table.
"""

from django.db import models
from django.db.models import Q

from evaluation.models.judges import Judge
from evaluation.models.prompts import ArticleVersion
from labeling.models.chats import Chat, ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Run(models.Model):
    """One judge over one chat set; RunChat pins what it covers."""

    class Purpose(models.TextChoices):
        EVALUATION = "evaluation", "Evaluation"
        REGRESSION = "regression", "Regression test"
        CONFIRM = "confirm", "Confirming run of a regression test"
        NOISE = "noise", "Champion asked again"
        TRY = "try", "Tried from the editor"
        ANCHORS = "anchors", "Anchor chats of a sample plan"
        IMPORT = "import", "Imported verdicts"

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        DONE = "done", "Done"
        DONE_WITH_FAILURES = "done_with_failures", "Done with failures"
        CANCELLED = "cancelled", "Cancelled"

    class Mode(models.TextChoices):
        LIVE = "live", "One request a call"
        BATCH = "batch", "Batch API, half price"

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.EVALUATION)
    mode = models.CharField(max_length=5, choices=Mode.choices, default=Mode.LIVE)
    replicate = models.PositiveIntegerField(default=0)
    source_hash = models.CharField(max_length=64, blank=True, default="")
    # Options that do not change the judge: criteria, split, limit, calls in flight.
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=20, choices=State.choices, default=State.RUNNING)
    error = models.TextField(blank=True, default="")
    units_total = models.PositiveIntegerField(default=0)
    units_done = models.PositiveIntegerField(default=0)
    units_failed = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    reused = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)
    # The budget, and what counts against it: a request's worst case before it leaves, its cost afterwards.
    budget_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    committed_usd = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    # Characters of all prompts sent, and of those that repeated an earlier prompt's beginning.
    prompt_chars = models.PositiveBigIntegerField(default=0)
    repeated_chars = models.PositiveBigIntegerField(default=0)
    # When the run was last enqueued; a sweep enqueues it again if no worker claims it.
    rung_at = models.DateTimeField(null=True, blank=True)
    # Verdicts, counted when the run ends: {"all", "unparsed", "no_verdict"}; null until then.
    verdict_counts = models.JSONField(null=True, blank=True)
    started_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source_hash"], name="run_source", condition=~Q(source_hash=""))
        ]
        indexes = [
            models.Index(fields=["state"], name="run_state"),
            models.Index(fields=["chat_set", "-id"], name="run_set"),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"

    @property
    def units_left(self) -> int:
        """Return the units that are neither done nor failed."""
        return self.units_total - self.units_done - self.units_failed

    @property
    def coverage(self) -> str:
        """Return how many of its units are done, such as 3 of 130; "" where none is missing."""
        return "" if self.units_done >= self.units_total else f"{self.units_done:,} of {self.units_total:,}"

    @property
    def standing(self) -> str:
        """Return the state and, where units are missing, the coverage: Cancelled: 3 of 130."""
        return f"{self.get_state_display()}: {self.coverage}" if self.coverage else self.get_state_display()


# In a run's options: its units are for the workers, not for the process that started it.
ON_WORKER = "on_worker"
# All units are processed: the verdicts may be shown and compared.
FINISHED = (Run.State.DONE, Run.State.DONE_WITH_FAILURES)
# Runs that evaluate a set, here or elsewhere: neither an author's tries nor the runs of a regression test.
EVALUATIONS = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)
# Runs over the same anchor chats every night: they watch the judge, and would crowd the lists of others.
ANCHORS = Run.Purpose.ANCHORS
# Runs of a regression test.
TESTS = (Run.Purpose.REGRESSION, Run.Purpose.CONFIRM, Run.Purpose.NOISE)


class RunChat(models.Model):
    """A chat that a run and all its reports cover, with its split at that time."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="run_chats", db_index=False)
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    split = models.CharField(max_length=8, blank=True, default="")
    weight = models.FloatField(default=1.0)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["run", "chat"], name="runchat_once")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.chat_id}"


class WorkerLease(models.Model):
    """One worker process's heartbeat; the units it works on point here."""

    token = models.UUIDField()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="leases")
    worker = models.CharField(max_length=120)
    pid = models.PositiveIntegerField(default=0)
    beat_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token"], name="workerlease_token")]

    def __str__(self) -> str:
        return self.worker


class WorkerHeartbeat(models.Model):
    """When a Celery worker was last heard of, busy or not; one row a worker, deleted when it stops in order.

    The row without queues is the site's own: the readiness check writes it.
    """

    name = models.CharField(max_length=255)
    queues = models.JSONField(default=list)
    # What it works on: [{"task", "id", "since"}, …]; null where it does not say.
    doing = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    beat_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="workerheartbeat_name")]

    def __str__(self) -> str:
        return self.name


class Unit(models.Model):
    """A planned piece of work: one chat and one group of criteria."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        LEASED = "leased", "In work"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="units", db_index=False)
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    group = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=6, choices=State.choices, default=State.OPEN)
    lease = models.ForeignKey(
        WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="units"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True, default="")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "chat", "group"], name="unit_once")]
        indexes = [
            models.Index(fields=["run", "id"], name="unit_open", condition=Q(state="open")),
            models.Index(fields=["lease"], name="unit_lease", condition=Q(state="leased")),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.chat_id}/{self.group}"


# Units without an answer yet: waiting, or at a worker.
UNITS_LEFT = (Unit.State.OPEN, Unit.State.LEASED)


class TextBlock(models.Model):
    """A part of a prompt, stored once and shared by calls."""

    hash = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()

    def __str__(self) -> str:
        return self.hash[:12]


class ModelCall(models.Model):
    """One question to a model, addressed by its content: the same question is asked once."""

    class State(models.TextChoices):
        CLAIMED = "claimed", "Asked, no answer yet"
        ANSWERED = "answered", "Answered"
        REFUSED = "refused", "Refused"
        CUT_OFF = "cut_off", "Cut off"
        TOO_LONG = "too_long", "Too long"
        FAILED = "failed", "Failed"

    key = models.CharField(max_length=64)
    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    role = models.CharField(max_length=10)
    settings = models.JSONField()
    # [[role, [text block hash, …]], …]
    parts = models.JSONField()
    sample = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=8, choices=State.choices, default=State.CLAIMED)
    error = models.CharField(max_length=300, blank=True, default="")
    reply = models.TextField(blank=True, default="")
    # What the model showed of its thinking: for the call's page, never read for a verdict.
    thinking = models.TextField(blank=True, default="", db_default="")
    finish_reason = models.CharField(max_length=40, blank=True, default="")
    logprobs = models.JSONField(null=True, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    # The part of completion_tokens that was thinking, where the endpoint says so.
    reasoning_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="call_key")]

    def __str__(self) -> str:
        return self.key[:12]


class UnitCall(models.Model):
    """The call that a unit used for a role and step."""

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="unit_calls", db_index=False)
    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="+", db_index=False)
    role = models.CharField(max_length=10)
    step = models.PositiveSmallIntegerField()
    window = models.PositiveSmallIntegerField(default=0)
    sample = models.PositiveSmallIntegerField(default=0)
    reused = models.BooleanField(default=False)

    class Meta:
        ordering = ["step", "id"]
        constraints = [
            models.UniqueConstraint(fields=["unit", "role", "step", "window", "sample"], name="unitcall_once")
        ]
        indexes = [models.Index(fields=["call"], name="unitcall_call")]

    def __str__(self) -> str:
        return f"{self.unit_id} {self.role}"


class Attempt(models.Model):
    """One HTTP request, committed before it leaves: a crash leaves a record of what may be billed."""

    class Outcome(models.TextChoices):
        SENT = "sent", "Sent, no outcome yet"
        ANSWERED = "answered", "Answered"
        REFUSED = "refused", "Refused"
        CUT_OFF = "cut_off", "Cut off at the token limit"
        TOO_LONG = "too_long", "Over the model's context"
        EMPTY = "empty", "Empty answer"
        RATE_LIMITED = "rate_limited", "Rate limited"
        SERVER_ERROR = "server_error", "Server error"
        TIMEOUT = "timeout", "Timed out"
        CONNECTION = "connection", "No connection"
        NOT_JSON = "not_json", "Not a completion"
        TOO_BIG = "too_big", "Answer too big"
        AUTH = "auth", "Key refused"
        BAD_REQUEST = "bad_request", "Request refused"
        REDIRECT = "redirect", "Redirected elsewhere"
        CANCELLED = "cancelled", "Cancelled, never asked"
        UNKNOWN = "unknown_maybe_billed", "Unknown, may have been billed"

    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    batch = models.ForeignKey(
        "Batch", on_delete=models.PROTECT, null=True, blank=True, related_name="attempts"
    )
    number = models.PositiveSmallIntegerField()
    sent_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=20, choices=Outcome.choices, default=Outcome.SENT)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    request_id = models.CharField(max_length=200, blank=True, default="")
    error = models.CharField(max_length=300, blank=True, default="")
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)
    reserved_usd = models.DecimalField(max_digits=20, decimal_places=12, null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["call", "number"], name="attempt_number")]
        indexes = [
            models.Index(fields=["sent_at"], name="attempt_open", condition=Q(ended_at__isnull=True)),
            models.Index(fields=["ended_at"], name="attempt_ended", condition=Q(ended_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.call_id} #{self.number}"


def error_in_words(error: str) -> str:
    """Return an error without the outcome's code at its beginning: codes are for programs of ours.

    >>> error_in_words("not_json: the endpoint sent a web page")
    'Not a completion: the endpoint sent a web page'
    """
    kind, colon, rest = error.partition(":")
    return f"{Attempt.Outcome(kind).label}{colon}{rest}" if kind in Attempt.Outcome.values else error


class Verdict(models.Model):
    """The judge's answer on (chat, criterion); value None with state read means not applicable."""

    class State(models.TextChoices):
        READ = "read", "Read"
        UNPARSED = "unparsed", "Unparsed"
        REFUSED = "refused", "Refused"
        CUT_OFF = "cut_off", "Cut off"
        TOO_LONG = "too_long", "Too long"
        FAILED = "failed", "Failed"

    class ReadBy(models.TextChoices):
        RULES = "rules", "the marked block"
        FORMATTER = "formatter", "the formatter model"
        IMPORT = "import", "import"

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="verdicts", db_index=False)
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+", db_index=False)
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, null=True, blank=True, related_name="verdicts")
    state = models.CharField(max_length=8, choices=State.choices)
    value = models.BooleanField(null=True, blank=True)
    # Reflection's first answer, kept beside the final one; '' where there was none.
    first_state = models.CharField(max_length=8, choices=State.choices, blank=True, default="")
    first_value = models.BooleanField(null=True, blank=True)
    p_true = models.FloatField(null=True, blank=True)
    # Imported verdicts only; LACE's rationale is the stored reply of the unit's last reasoning call.
    rationale = models.TextField(blank=True, default="")
    explanation = models.TextField(blank=True, default="")
    read_by = models.CharField(max_length=9, choices=ReadBy.choices, default=ReadBy.RULES)
    contradicts = models.BooleanField(default=False)
    sided_with = models.CharField(max_length=8, blank=True, default="")
    # The samples' answers; null with a single sample.
    votes_true = models.PositiveSmallIntegerField(null=True, blank=True)
    votes_false = models.PositiveSmallIntegerField(null=True, blank=True)
    votes_na = models.PositiveSmallIntegerField(null=True, blank=True)
    # Quotes in the prose, and those of which the message named has the words, or similar ones.
    quotes = models.PositiveSmallIntegerField(default=0)
    quotes_verified = models.PositiveSmallIntegerField(default=0)
    quotes_close = models.PositiveSmallIntegerField(default=0)
    # The brief that the Judge read first.
    first_brief = models.CharField(max_length=8, blank=True, default="")
    flags = models.JSONField(default=list)
    stored_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "chat", "criterion"], name="verdict_once"),
            models.CheckConstraint(condition=Q(state="read") | Q(value__isnull=True), name="verdict_value"),
        ]
        indexes = [
            models.Index(fields=["run", "criterion", "state", "value"], name="verdict_cell"),
            models.Index(fields=["chat", "criterion", "run"], name="verdict_chat"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.chat_id} {self.criterion_id}"


class Passage(models.Model):
    """A passage of an article, retrieved for a unit's chat and shown to the judge."""

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="passages")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    article_version = models.ForeignKey(ArticleVersion, on_delete=models.PROTECT, related_name="+")
    rank = models.PositiveSmallIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    score = models.FloatField()

    class Meta:
        ordering = ["rank"]
        constraints = [models.UniqueConstraint(fields=["unit", "criterion", "rank"], name="passage_rank")]

    def __str__(self) -> str:
        return f"{self.unit_id}: {self.article_version_id} #{self.rank}"


class Batch(models.Model):
    """A file of requests at the endpoint's Batch API; the row exists from before the upload."""

    class State(models.TextChoices):
        PREPARED = "prepared", "Prepared"
        UPLOADED = "uploaded", "Uploaded"
        SUBMITTED = "submitted", "Submitted"
        COLLECTED = "collected", "Collected"
        FAILED = "failed", "Failed"

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="batches")
    endpoint = models.CharField(max_length=200)
    file_id = models.CharField(max_length=200, blank=True, default="")
    batch_id = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=9, choices=State.choices, default=State.PREPARED)
    error = models.CharField(max_length=300, blank=True, default="")
    requests = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    polled_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "batch_id"], name="batch_id", condition=~Q(batch_id="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.batch_id or self.pk}"


class EndpointState(models.Model):
    """One model's request and token limits and circuit breaker, used without Redis."""

    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    # GCRA: the earliest time (Unix seconds) at which the next request, and the next token, is due.
    requests_due = models.FloatField(default=0)
    tokens_due = models.FloatField(default=0)
    # No request leaves before this time (Unix seconds): Retry-After and exhausted x-ratelimit headers.
    not_before = models.FloatField(default=0)
    failures = models.PositiveIntegerField(default=0)
    opened_at = models.FloatField(null=True, blank=True)
    probe_at = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "model"], name="endpoint_once")]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"
