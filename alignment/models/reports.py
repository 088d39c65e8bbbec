"""Computed documents, pinned to the labels and verdicts they were computed from."""

from django.db import models

from evaluation.models.runs import Run
from labeling.models.chats import ChatSet


class Report(models.Model):
    """An immutable document; the same labels, run and options find the same row.

    Those of kind `report` have an address of their own and stay for good. Of the others each row goes when
    one of the same subject is stored, computed after answers have changed.
    """

    class Kind(models.TextChoices):
        """What stands in the body."""

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

    kind = models.CharField(max_length=10, choices=Kind, default=Kind.REPORT)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    against = models.CharField(max_length=140)
    split = models.CharField(max_length=8, blank=True, default="")
    # sha256 of all the body depends on: run and its state, set and its members, labels_seq and version of
    # each criterion, against, split, policy. It moves with every change of the human answers. A finished
    # run's own chats stay as they are and are not looked at.
    pin = models.CharField(max_length=64)
    # sha256 of what the body is about, whatever was answered; '' in reports of earlier versions.
    subject = models.CharField(max_length=64, blank=True, default="")
    policy = models.PositiveIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pin"], name="report_pin")]
        indexes = [models.Index(fields=["subject"], name="report_subject")]

    def __str__(self) -> str:
        return f"Report {self.pk}"
