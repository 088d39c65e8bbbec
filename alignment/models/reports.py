"""Computed documents, pinned to the labels and verdicts that they were computed from."""

from django.db import models

from evaluation.models.runs import Run, WorkerLease
from labeling.models.chats import ChatSet


class Report(models.Model):
    """An immutable document; the same labels, run and options give the same row.

    Documents of kind `report` have a URL. A shared one is kept for good; every other document is replaced by
    a newer one on the same subject.
    """

    class Kind(models.TextChoices):
        """Kind of document in the body."""

        REPORT = "report"
        CRITERION = "criterion"
        BASELINES = "baselines"
        LEAGUE = "league"
        MEASURED = "measured"
        COVERED = "covered"
        HELD_OUT = "held_out"
        CELLS = "cells"
        PLAN = "plan"
        ALIKE = "alike"
        CERTIFIED = "certified"
        COSTS = "costs"

    kind = models.CharField(max_length=10, choices=Kind, default=Kind.REPORT)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    against = models.CharField(max_length=140)
    split = models.CharField(max_length=8, blank=True, default="")
    # SHA-256 of all dependencies of the body: run and its state, set and its members, labels_seq and version
    # of each criterion, against, split, policy. It changes with every label. The chats of a finished run are
    # fixed and not part of it.
    pin = models.CharField(max_length=64)
    # SHA-256 of the subject, independent of labels; '' in older reports.
    subject = models.CharField(max_length=64, blank=True, default="")
    policy = models.PositiveIntegerField()
    body = models.JSONField()
    # What the briefs of a debate changed; null without a debate, or until the direct run exists.
    briefs = models.JSONField(null=True, blank=True)
    # A report that somebody linked, stored by a command or certified.
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pin"], name="report_pin")]
        indexes = [models.Index(fields=["subject"], name="report_subject")]

    def __str__(self) -> str:
        return f"Report {self.pk}"


class ReportRefresh(models.Model):
    """A report that waits for a worker, one row a subject; the row is deleted once the report is stored."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting for a worker"
        WORKING = "working", "Being computed"
        FAILED = "failed", "Failed"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    # The part of the run: the scope's other fields, with days as ISO texts.
    part = models.JSONField()
    subject = models.CharField(max_length=64)
    # Whether its result is a shared report.
    share = models.BooleanField(default=False)
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject"], name="report_refresh_subject")]

    def __str__(self) -> str:
        return f"Refresh {self.pk} of run {self.run_id}"
