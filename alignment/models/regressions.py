"""Regression tests of prompts and judges, their policies, and accesses to the holdout."""

from django.db import models
from django.db.models import Q

from alignment.models.requests import RequestToLeads
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion


class PolicyQuerySet(models.QuerySet["Policy"]):
    """Queries about policies."""

    def revised(self) -> "Policy | None":
        """Return the newest gate policy that a user created; None while the start values apply.

        A policy file of one test (regress --policy) does not become current.
        """
        rows = self.filter(kind=Policy.Kind.GATE, created_by__isnull=False)
        return rows.select_related("created_by").order_by("-id").first()


class Policy(models.Model):
    """A named set of limits; a change makes a new version, and the newest one applies."""

    class Kind(models.TextChoices):
        GATE = "gate", "Regression gate"

    kind = models.CharField(max_length=6, choices=Kind.choices, default=Kind.GATE)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    # JSON of alignment.regression.core.GatePolicy.
    parameters = models.JSONField()
    reason = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PolicyQuerySet.as_manager()

    class Meta:
        ordering = ["kind", "name", "version"]
        constraints = [models.UniqueConstraint(fields=["kind", "name", "version"], name="policy_version")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class RegressionTest(models.Model):
    """A paired comparison of candidate and champion on a labelled set; its result is immutable.

    Its runs cover only the criteria that the change affects.
    """

    class Kind(models.TextChoices):
        PROMPT = "prompt", "Prompt"
        JUDGE = "judge", "Whole judge"

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        CONFIRMING = "confirming", "Confirming"
        DONE = "done", "Done"
        CANCELLED = "cancelled", "Cancelled"

    class Result(models.TextChoices):
        PASS = "pass", "Pass"
        FAIL = "fail", "Fail"
        INCONCLUSIVE = "inconclusive", "Inconclusive"

    kind = models.CharField(max_length=6, choices=Kind.choices, default=Kind.PROMPT)
    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, related_name="+")
    split = models.CharField(max_length=8, choices=Split.choices, blank=True, default="")
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="+")
    # The version under test; null if a whole judge is tested.
    candidate = models.ForeignKey(
        PromptVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # Profiles of champion and candidate, if they come from stored ones.
    profile = models.ForeignKey(
        JudgeProfile, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    candidate_profile = models.ForeignKey(
        JudgeProfile, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    baseline_run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    candidate_run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    confirm_run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # A repeat of the champion, which measures the judge's noise.
    noise_run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    result = models.CharField(max_length=12, choices=Result.choices, blank=True, default="")
    reasons = models.JSONField(default=list)
    # Counts and tests behind the result, as of the decision.
    body = models.JSONField(null=True, blank=True)
    # The release of the candidate; `overridden`: the gate had not passed it.
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    released_at = models.DateTimeField(null=True, blank=True)
    release_reason = models.TextField(blank=True, default="")
    overridden = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(overridden=False) | ~Q(release_reason=""), name="override_reasoned"
            ),
            models.CheckConstraint(
                condition=Q(state="done") & ~Q(result="") | ~Q(state="done") & Q(result=""),
                name="regression_decided",
            ),
        ]
        indexes = [
            models.Index(
                fields=["state"], name="regression_open", condition=Q(state__in=["running", "confirming"])
            ),
            models.Index(fields=["candidate", "-id"], name="regression_candidate"),
        ]

    def __str__(self) -> str:
        return f"Regression test {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether it is not decided yet."""
        return self.state in (self.State.RUNNING, self.State.CONFIRMING)

    @property
    def verdict(self) -> str:
        """The gate's result, else the state; a key of the status chips."""
        return self.result or self.state

    @property
    def holdout(self) -> bool:
        """Whether it includes holdout chats."""
        return self.split in ("", Split.HOLDOUT)


class ReleaseRequest(RequestToLeads):
    """An author's request to release a tested candidate."""

    class Answer(models.TextChoices):
        OPEN = "open", "Open"
        RELEASED = "released", "Released"
        REFUSED = "refused", "Refused"
        MORE_LABELS = "more_labels", "More labels needed"

    regression = models.ForeignKey(RegressionTest, on_delete=models.PROTECT, related_name="requests")
    answer = models.CharField(max_length=11, choices=Answer.choices, default=Answer.OPEN)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["regression"], condition=Q(answer="open"), name="one_open_release_request"
            )
        ]

    def __str__(self) -> str:
        return f"release of test {self.regression_id}: {self.answer}"


class HoldoutOpening(models.Model):
    """One use of a holdout split for one criterion; append-only."""

    regression = models.ForeignKey(RegressionTest, on_delete=models.PROTECT, related_name="openings")
    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["chat_set", "criterion", "at"], name="opening")]

    def __str__(self) -> str:
        return f"{self.chat_set_id}: {self.criterion_id}"
