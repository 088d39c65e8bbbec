"""Counts of model calls and of lost leases: what watches the site reads these, not every attempt."""

from django.db import models


class CallCount(models.Model):
    """All attempts to ask a model that ended with an outcome, since the site exists."""

    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    outcome = models.CharField(max_length=20)
    calls = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "model", "outcome"], name="callcount_once")
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.outcome}"


class WorkCounter(models.Model):
    """A number that only grows, and for attempts the time up to which they are in CallCount."""

    class Name(models.TextChoices):
        CALLS = "calls", "Attempts counted"
        LEASES_LOST = "leases_lost", "Leases taken back from workers that ended or fell silent"

    name = models.CharField(max_length=20, choices=Name.choices)
    value = models.PositiveBigIntegerField(default=0)
    counted_to = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="workcounter_name")]

    def __str__(self) -> str:
        return self.name
