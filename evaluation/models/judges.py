"""Judges: immutable, fingerprinted configurations."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils import timezone

from evaluation.models.prompts import KnowledgeSnapshot, PromptVersion
from labeling.models.rubric import Criterion, CriterionVersion


class Engine(models.TextChoices):
    """How a judge reaches a verdict."""

    DIRECT = "direct", "direct"
    REFLECTION = "reflection", "reflection"
    DEBATE = "debate", "debate"
    AUTO = "auto", "auto"


# A model test without a step for so long was lost with its worker; a step is a few calls of up to 10 minutes.
TEST_LOST_AFTER = timedelta(minutes=40)


class JudgeProfile(models.Model):
    """A named, editable recipe; with today's champions it yields a judge."""

    name = models.CharField(max_length=120)
    # What evaluation.judges.core.spec writes: engine, models by role, samples, grouping, knowledge, windows.
    config = models.JSONField()
    is_default = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="profile_name"),
            models.UniqueConstraint(
                fields=["is_default"], name="profile_default", condition=Q(is_default=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class EndpointModel(models.Model):
    """What is known of a model at an endpoint: set by the workspace, learned from its answers, tested."""

    endpoint = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    # Fields of evaluation.endpoints.core.profile.ModelProfile.
    chosen = models.JSONField(default=dict, blank=True)
    learned = models.JSONField(default=dict, blank=True)
    # The last finished test, as evaluation.model_tests.checks.result_json gives it.
    test = models.JSONField(null=True, blank=True)
    tests = models.PositiveSmallIntegerField(default=0)
    tested_at = models.DateTimeField(null=True, blank=True)
    tested_by = models.ForeignKey(
        "labeling.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # A test in work: when it began, and its finished steps.
    test_began_at = models.DateTimeField(null=True, blank=True)
    test_steps = models.PositiveSmallIntegerField(default=0)
    test_error = models.CharField(max_length=300, blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["endpoint", "model"]
        constraints = [models.UniqueConstraint(fields=["endpoint", "model"], name="endpointmodel_once")]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"

    @property
    def testing(self) -> bool:
        """Whether a test is in work."""
        return self.test_began_at is not None and timezone.now() - self.updated_at < TEST_LOST_AFTER

    def test_seconds_left(self, steps: int) -> float | None:
        """Return the seconds left of a test of so many steps at its pace; None before its first step."""
        if self.test_began_at is None or not self.test_steps:
            return None
        pace = (timezone.now() - self.test_began_at).total_seconds() / self.test_steps
        return pace * max(0, steps - self.test_steps)


class Judge(models.Model):
    """A configuration that determines what is sent to a model; equal fingerprints are comparable."""

    class Kind(models.TextChoices):
        LACE = "lace", "LACE"
        IMPORTED = "imported", "Imported"

    fingerprint = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.LACE)
    name = models.CharField(max_length=200)
    engine = models.CharField(max_length=10, choices=Engine.choices, blank=True, default="")
    config = models.JSONField()
    snapshot = models.ForeignKey(
        KnowledgeSnapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="judges"
    )
    profile = models.ForeignKey(
        JudgeProfile, on_delete=models.SET_NULL, null=True, blank=True, related_name="judges"
    )
    # By model, where requests differ from `config`: parameters that are not sent, or under another name.
    sent = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fingerprint"], name="judge_fingerprint")]

    def __str__(self) -> str:
        return self.name

    @property
    def model(self) -> str:
        """Return the reasoning model's name; "" for an imported judge."""
        return str(self.config.get("model", ""))

    @property
    def endpoints(self) -> list[str]:
        """Return the ids of the endpoints that it asks, its own first; empty for an imported judge."""
        roles = [str(role.get("endpoint", "")) for role in self.config.get("roles", {}).values()]
        return [name for name in dict.fromkeys([str(self.config.get("endpoint", "")), *roles]) if name]

    @property
    def embedded(self) -> bool:
        """Return whether the embedded demonstration model answers."""
        return str(self.config.get("endpoint", "")).startswith("embedded:")

    @property
    def simulated(self) -> bool:
        """Return whether the simulated judge of a demo workspace answers."""
        return str(self.config.get("endpoint", "")) == "simulated:"


class JudgePrompt(models.Model):
    """The prompt version that a judge uses for a criterion, and the criterion's group."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="prompts")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_version = models.ForeignKey(CriterionVersion, on_delete=models.PROTECT, related_name="+")
    prompt_version = models.ForeignKey(PromptVersion, on_delete=models.PROTECT, related_name="+")
    group = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["group", "id"]
        constraints = [models.UniqueConstraint(fields=["judge", "criterion"], name="judgeprompt_once")]

    def __str__(self) -> str:
        return f"{self.judge_id}: {self.criterion_id}"
