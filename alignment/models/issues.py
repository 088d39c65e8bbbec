"""Issues: clusters of failing chats that keep their identity over weeks."""

from django.db import models
from django.db.models import Q

from evaluation.models.questions import StoredQuestion
from evaluation.models.runs import Verdict, WorkerLease
from labeling.models.chats import Chat, Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion


class Issue(models.Model):
    """One problem of the bot: failing chats of a criterion with similar rationales."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        ACKNOWLEDGED = "acknowledged", "Acknowledged"
        FIXED = "fixed", "Fixed"
        IGNORED = "ignored", "Ignored"

    class NameBy(models.TextChoices):
        TERMS = "terms", "its terms"
        MODEL = "model", "the judge's model"
        PERSON = "person", "a user"

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    # The most frequent topic of its newest week.
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    name_by = models.CharField(max_length=6, choices=NameBy.choices, default=NameBy.TERMS)
    # What the model says that goes wrong; it goes with the texts that it was written from.
    summary = models.TextField(blank=True, default="")
    state = models.CharField(max_length=12, choices=State.choices, default=State.OPEN)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    note = models.TextField(blank=True, default="")
    merged_into = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="merged"
    )
    merged_week = models.DateField(null=True, blank=True)
    # Mondays of its first and newest week with chats; null while it has none.
    first_week = models.DateField(null=True, blank=True)
    last_week = models.DateField(null=True, blank=True)
    # The week in which it was marked fixed, and whether it occurred in a later one.
    fixed_week = models.DateField(null=True, blank=True)
    returned = models.BooleanField(default=False)
    revision = models.PositiveIntegerField(default=0)
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    changed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["last_week", "state"], name="issue_listed")]
        constraints = [
            models.CheckConstraint(
                condition=Q(merged_into=None, merged_week=None)
                | Q(merged_into__isnull=False, merged_week__isnull=False),
                name="issue_merged_week",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def touched(self) -> bool:
        """Whether a user has worked on it."""
        return self.revision > 0


class IssueWeek(models.Model):
    """The chats of an issue in a week, counted, with the terms that tell them from others."""

    issue = models.ForeignKey(Issue, on_delete=models.CASCADE, related_name="weeks")
    week = models.DateField()
    chats = models.PositiveIntegerField()
    terms = models.JSONField(default=list)
    # Weight by keyed hash of a term: finds the issue again, and says nothing about the words.
    centroid = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issue", "week"], name="issueweek_once")]
        indexes = [models.Index(fields=["week"], name="issueweek_week")]

    def __str__(self) -> str:
        return f"{self.issue_id}: {self.week}"


class IssueChat(models.Model):
    """A failing chat of an issue, by its newest verdict."""

    issue = models.ForeignKey(Issue, on_delete=models.CASCADE, related_name="chats")
    week = models.DateField()
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    verdict = models.ForeignKey(Verdict, on_delete=models.CASCADE, related_name="+")
    # Similarity to the centroid; bit i is set where the text has the week's i-th term.
    closeness = models.FloatField()
    bits = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issue", "chat"], name="issuechat_once")]
        indexes = [models.Index(fields=["week"], name="issuechat_week")]

    def __str__(self) -> str:
        return f"{self.issue_id}: {self.chat_id}"


class IssueScan(models.Model):
    """The clustering of a week's failing chats; done again when verdicts were added, or on request."""

    class State(models.TextChoices):
        OPEN = "open", "Waiting"
        WORKING = "working", "In work"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    week = models.DateField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    error = models.TextField(blank=True, default="")
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.ForeignKey(WorkerLease, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    rung_at = models.DateTimeField(null=True, blank=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # The finished runs that were read, and what they had.
    runs = models.JSONField(default=list)
    chats = models.PositiveIntegerField(default=0)
    verdicts = models.PositiveIntegerField(default=0)
    clustered = models.PositiveIntegerField(default=0)
    # Failing verdicts of criteria with too few of them to group.
    few = models.PositiveIntegerField(default=0)
    # The embedding model that took part, and why none did although one was chosen.
    embedding_model = models.CharField(max_length=200, blank=True, default="")
    fallback = models.CharField(max_length=500, blank=True, default="")
    asked_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-week"]
        constraints = [models.UniqueConstraint(fields=["week"], name="issuescan_week")]

    def __str__(self) -> str:
        return f"Issues of {self.week}"

    @property
    def is_too_small(self) -> bool:
        """Whether no criterion had enough failing chats to group."""
        return self.verdicts == self.few

    @property
    def is_open(self) -> bool:
        """Whether it still has to be done."""
        return self.state in (self.State.OPEN, self.State.WORKING)


class IssueSettings(models.Model):
    """The one row that says how failing chats are compared; words alone until a lead chooses a model."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    # Id of the endpoint; "": the server's own.
    endpoint = models.CharField(max_length=200, blank=True, default="")
    # "": words alone.
    embedding_model = models.CharField(max_length=200, blank=True, default="")
    # For the embeddings of one week's clustering.
    budget_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="issuesettings_single")]

    def __str__(self) -> str:
        return "Grouping of failing chats"

    @classmethod
    def current(cls) -> "IssueSettings":
        """Return the row, or the defaults where nobody has changed them; it writes nothing."""
        return cls.objects.filter(id=1).first() or cls()


class IssueNaming(StoredQuestion):
    """One request to the judge's model for the name of an issue, and its result."""

    issue = models.ForeignKey(Issue, on_delete=models.CASCADE, related_name="namings")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    # The chats whose rationales are in the request: the answer goes with the first of them.
    chats = models.JSONField(default=list)

    class Meta(StoredQuestion.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["issue"], name="issuenaming_open_once", condition=Q(state__in=["open", "asking"])
            )
        ]

    def __str__(self) -> str:
        return f"Name of issue {self.issue_id}"
