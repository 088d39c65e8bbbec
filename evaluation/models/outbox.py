"""Events for other systems, the webhooks that receive them, and each delivery."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from evaluation.models.runs import WorkerLease
from labeling.models.people import User


class EventKind(models.TextChoices):
    """Kinds of events. A webhook subscribes to kinds; a test goes to the one that is tested."""

    VERDICTS = "verdicts.stored", "Verdicts of a chat were stored"
    RUN = "run.finished", "A run ended"
    ALERT_RAISED = "alert.raised", "An alert was raised, or its cause was named"
    ALERT_ENDED = "alert.ended", "An alert ended"
    ISSUE = "issue.reported", "A lead reported an issue"
    TEST = "webhook.test", "Test"


# The kinds that a webhook can subscribe to, in the order of pages.
SUBSCRIBED = tuple(kind for kind in EventKind if kind != EventKind.TEST)


class WebhookEndpoint(models.Model):
    """An address that receives events as signed requests."""

    class State(models.TextChoices):
        IDLE = "idle", "Idle"
        DUE = "due", "Waits for a worker"
        SENDING = "sending", "In work"

    name = models.CharField(max_length=80)
    address = models.CharField(max_length=500)
    # Signing secrets as evaluation.gateway.keys writes them; the older one signs too for a while.
    secret = models.TextField()
    secret_hint = models.CharField(max_length=4, blank=True, default="")
    old_secret = models.TextField(blank=True, default="")
    old_secret_until = models.DateTimeField(null=True, blank=True)
    kinds = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    # Set where the workbench switched it off by itself.
    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_because = models.CharField(max_length=200, blank=True, default="")
    # For the sender, as evaluation.runs.worker.leased_rows needs them.
    state = models.CharField(max_length=7, choices=State.choices, default=State.IDLE)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    tries = models.PositiveSmallIntegerField(default=0)
    rung_at = models.DateTimeField(null=True, blank=True)
    # Requests in a row without an answer that counts; nothing is sent before `hold_until`.
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    hold_until = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        verbose_name = "webhook"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["name"], name="webhookendpoint_name")]

    def __str__(self) -> str:
        return self.name


class OutboxEvent(models.Model):
    """One event, written in the transaction of its cause. Its id is the same in every request."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=40, choices=EventKind.choices)
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="outboxevent_created")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Delivery(models.Model):
    """An event for a webhook: it waits until the receiver has accepted it, or for a last try."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Given up"

    event = models.ForeignKey(OutboxEvent, on_delete=models.CASCADE, related_name="deliveries")
    # The indexes below begin with it.
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    # The latest attempt: null and empty without one.
    sent_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    response = models.CharField(max_length=500, blank=True, default="")
    error = models.CharField(max_length=300, blank=True, default="")
    # The latest attempts, oldest first: {"at", "status", "ms", "error"}.
    history = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["event", "endpoint"], name="delivery_once")]
        indexes = [
            models.Index(fields=["endpoint", "next_at"], name="delivery_due", condition=Q(state="waiting")),
            models.Index(fields=["endpoint", "-id"], name="delivery_log"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.endpoint_id}"
