"""Disagreements between consensus and verdict, with their triage."""

from django.db import models
from django.db.models import Q

from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Misalignment(models.Model):
    """A chat and criterion on which a finished run disagreed with the consensus, and its triage."""

    class Cause(models.TextChoices):
        JUDGE = "judge", "Judge wrong"
        LABEL = "label", "Label wrong"
        CRITERION = "criterion", "Criterion ambiguous"
        KNOWLEDGE = "knowledge", "Knowledge missing"
        INJECTION = "injection", "Prompt injection"
        OTHER = "other", "Other"

    class State(models.TextChoices):
        OPEN = "open", "Open"
        TRIAGED = "triaged", "Triaged"
        CLOSED = "closed", "Closed"

    class ClosedBy(models.TextChoices):
        VERSION = "version", "a later version"
        JUDGE = "judge", "another judge"
        LABEL = "label", "a changed label"

    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    # Set by users only.
    cause = models.CharField(max_length=9, choices=Cause.choices, blank=True, default="")
    note = models.TextField(blank=True, default="")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    # The newest run that disagreed here, or that closed it.
    newest_run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    # What closed it, '' while it is not closed; the prompt version if a version did.
    closed_by = models.CharField(max_length=7, choices=ClosedBy.choices, blank=True, default="")
    closed_by_version = models.ForeignKey(
        PromptVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    # Closed before, and disagreed again.
    returned = models.BooleanField(default=False)
    # Increases with each triage, so that two users cannot overwrite each other unnoticed.
    revision = models.PositiveIntegerField(default=0)
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "criterion"], name="misalignment_once"),
            models.CheckConstraint(
                condition=Q(state="closed") & ~Q(closed_by="") | ~Q(state="closed") & Q(closed_by=""),
                name="misalignment_closed_by",
            ),
            models.CheckConstraint(
                condition=Q(closed_by_version=None) | Q(closed_by="version"),
                name="misalignment_closed_by_version",
            ),
        ]
        # Covers all filters, counts and orders of the list, so that a page reads only the rows it shows.
        indexes = [
            models.Index(
                fields=["criterion", "state", "cause", "closed_by", "owner", "chat", "newest_run"],
                name="misalignment_listed",
            )
        ]

    def __str__(self) -> str:
        return f"Misalignment {self.pk}"

    @property
    def is_closed(self) -> bool:
        """Whether a later version, another judge or a changed label has closed it."""
        return self.state == self.State.CLOSED

    @property
    def closing(self) -> str:
        """What closed it, in words."""
        version = self.closed_by_version
        return f"version {version.number}" if version else str(self.get_closed_by_display())

    @property
    def history(self) -> "models.QuerySet[TriageChange]":
        """Triage changes, newest first."""
        return self.changes.select_related("by").order_by("-pk")


class Sighting(models.Model):
    """A run in which a disagreement was seen, with both answers."""

    misalignment = models.ForeignKey(Misalignment, on_delete=models.PROTECT, related_name="sightings")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)
    human = models.BooleanField()
    judge = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["misalignment", "run"], name="sighting_once")]
        indexes = [models.Index(fields=["run", "misalignment"], name="sighting_of_run")]

    def __str__(self) -> str:
        return f"{self.misalignment_id} in run {self.run_id}"


class TriageChange(models.Model):
    """One triage change, with old and new values; append-only.

    `was` and `now` hold the changed fields only: cause, note, owner (a username, '' for none).
    """

    misalignment = models.ForeignKey(Misalignment, on_delete=models.PROTECT, related_name="changes")
    # The item's revision after the change.
    number = models.PositiveIntegerField()
    was = models.JSONField()
    now = models.JSONField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()
    # The change that this one undid; null for other changes.
    undoes = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["misalignment", "number"], name="triagechange_number")]
        indexes = [models.Index(fields=["by", "-id"], name="triagechange_newest")]

    def __str__(self) -> str:
        return f"{self.misalignment_id} r{self.number}"

    @property
    def took_back(self) -> bool:
        """Whether it undid an earlier change."""
        return self.undoes_id is not None

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Changed fields with old and new values, in words."""
        causes = {**dict(Misalignment.Cause.choices), "": "none yet"}
        words = {"cause": causes, "owner": {"": "unassigned"}, "note": {"": "none"}}
        names = [name for name in words if name in self.now]
        return [
            (name, *(words[name].get(one[name], one[name]) for one in (self.was, self.now))) for name in names
        ]


class MisalignmentCount(models.Model):
    """A run that was scanned for disagreements, with the labels as of `seq`."""

    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="+")
    # The sum of all criteria's labels_seq; -1 if the run has to be scanned again.
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    # Newer runs cover all its verdicts, so changed labels no longer affect it.
    overtaken = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"run {self.run_id} at {self.seq}"
