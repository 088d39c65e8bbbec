"""Labelling jobs, labels with their history, adjudications, consensus; `evaluation` may not read them.

Keys with `db_index=False` begin a constraint or another index of their table, or nobody searches by them.
"""

from typing import Self

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Exists, Max, OuterRef, Q, Subquery

from labeling.models.chats import Chat, ChatSet
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline


class LabelingJobQuerySet(models.QuerySet["LabelingJob"]):
    """Filters of labelling jobs."""

    def listed(self, *, also: object = None) -> Self:
        """Exclude the finished jobs of sample plans, one a night: lists and pickers would be full of them.

        `also` : the id, as number or text, of a job that is kept in any case, such as the chosen one.
        """
        to_label = Assignment.objects.filter(job=OuterRef("pk"), state__in=Assignment.UNFINISHED)
        unfinished = Exists(to_label.exclude(kind=Assignment.Kind.GOLD))
        waits = ~Q(state=LabelingJob.State.CLOSED) & Q(unfinished)
        kept = Q(chat_set__in=ChatSet.objects.listed()) | waits
        if str(also).isdecimal() and len(str(also)) < 19:
            kept |= Q(pk=int(str(also)))
        return self.filter(kept)

    def of_plan(self, plan: int) -> Self:
        """Filter to the jobs that a sample plan has opened."""
        return self.filter(chat_set__in=ChatSet.objects.of_plan(plan))


class LabelingJob(models.Model):
    """A lead's request for labels: raters, criteria, chat set, labels per chat."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waits for its calibration round"
        OPEN = "open", "Open"
        CLOSED = "closed", "Closed"

    class Order(models.TextChoices):
        TOPIC = "topic", "By topic"
        RANDOM = "random", "Random"

    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    # Labels per chat; with a share, for that share of the chats, and one for each other chat.
    overlap = models.PositiveSmallIntegerField(default=1)
    overlap_share = models.FloatField(null=True, blank=True)
    order = models.CharField(max_length=6, choices=Order.choices, default=Order.TOPIC)
    seed = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=7, choices=State.choices, default=State.OPEN)
    criteria = models.ManyToManyField(Criterion, related_name="+")
    # Named raters, or the current members of the group.
    raters = models.ManyToManyField(Rater, related_name="+")
    group = models.ForeignKey(Group, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    guideline = models.ForeignKey(
        RubricGuideline, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # Chats with known answers (adjudications), mixed in at a rate; only leads see the results.
    gold_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    gold_rate = models.FloatField(default=0)
    # The calibration round that every rater of this job labels first.
    calibration = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="started_after"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = LabelingJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(overlap__gte=1), name="job_overlap"),
            models.CheckConstraint(
                condition=Q(overlap_share__isnull=True) | Q(overlap_share__gt=0, overlap_share__lte=1),
                name="job_overlap_share",
            ),
            models.CheckConstraint(condition=Q(gold_rate__gte=0, gold_rate__lt=1), name="job_gold_rate"),
        ]

    def __str__(self) -> str:
        return self.name


class Assignment(models.Model):
    """One required label of one chat: a slot that a rater leases, then submits or skips."""

    class Kind(models.TextChoices):
        NORMAL = "normal", "Normal"
        GOLD = "gold", "Gold"
        CALIBRATION = "calibration", "Calibration"

    class State(models.TextChoices):
        OPEN = "open", "Open"
        LEASED = "leased", "In work"
        SUBMITTED = "submitted", "Submitted"
        SKIPPED = "skipped", "Skipped"

    # A label is still to come.
    UNFINISHED = (State.OPEN, State.LEASED)

    job = models.ForeignKey(LabelingJob, on_delete=models.PROTECT, related_name="assignments")
    # NB: found through assignment_chat_rater.
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+", db_index=False)
    slot = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField()
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.NORMAL)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # When its rater got it: later texts are new to them.
    taken_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    revealed_at = models.DateTimeField(null=True, blank=True)
    # The guideline on the rater's screen when they submitted.
    guideline = models.ForeignKey(
        RubricGuideline, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    skip_reason = models.CharField(max_length=200, blank=True, default="")
    active_ms = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "chat", "slot"], name="assignment_slot", condition=~Q(state="skipped")
            ),
            # A lost lease keeps its owner, who may get the chat again.
            models.UniqueConstraint(
                fields=["job", "chat", "rater"],
                name="assignment_rater",
                condition=Q(rater__isnull=False) & ~Q(state="skipped", skip_reason="lease expired"),
            ),
            models.CheckConstraint(
                condition=Q(state="leased", lease_token__isnull=False, lease_expires_at__isnull=False)
                | (~Q(state="leased") & Q(lease_token__isnull=True, lease_expires_at__isnull=True)),
                name="lease_whole",
            ),
            models.CheckConstraint(condition=Q(slot__gte=1), name="assignment_slot_positive"),
        ]
        indexes = [
            models.Index(fields=["job", "position"], name="assignment_open", condition=Q(state="open")),
            models.Index(fields=["rater", "state"], name="assignment_rater_state"),
            models.Index(fields=["chat", "rater"], name="assignment_chat_rater"),
            models.Index(fields=["lease_expires_at"], name="assignment_expiry", condition=Q(state="leased")),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.chat_id} #{self.slot}"


class LabelQuerySet(models.QuerySet["Label"]):
    """Filters of labels."""

    def given(self) -> Self:
        """Return submitted labels from before the rater could see others' answers."""
        return self.filter(state=Label.State.SUBMITTED, post_reveal=False)

    def counted(self) -> Self:
        """Return the labels that consensus and agreement use: given labels to the question that counts.

        Labels to two questions of a criterion never count together (`counting_versions`).
        """
        return self.given().filter(version__in=counting_versions().values("pk"))


class Label(models.Model):
    """A rater's current answer on (chat, criterion); value None = not applicable."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        SUBMITTED = "submitted", "Submitted"
        CLEARED = "cleared", "Withdrawn draft"

    class Source(models.TextChoices):
        SCREEN = "screen", "Screen"
        IMPORT = "import", "Import"
        API = "api", "API"
        DEMO = "demo", "Written for the demo"
        CARRIED = "carried", "Carried over from another criterion"

    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+", db_index=False)
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="+", db_index=False)
    version = models.ForeignKey(CriterionVersion, on_delete=models.PROTECT, related_name="+")
    assignment = models.ForeignKey(
        Assignment, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    value = models.BooleanField(null=True, blank=True)
    rationale = models.TextField(blank=True, default="")
    # [{"n": 3, "start"?: 0, "end"?: 12, "quote"?: "…"}]; without start and end the whole message.
    evidence = models.JSONField(default=list)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    post_reveal = models.BooleanField(default=False)
    revision = models.PositiveIntegerField(default=1)
    active_ms = models.PositiveIntegerField(default=0)
    source = models.CharField(max_length=7, choices=Source.choices, default=Source.SCREEN)
    # The retired criterion that the rater answered, where the label carried over.
    carried_from = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    given_at = models.DateTimeField()

    objects = LabelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "criterion", "rater"], name="label_once"),
            models.CheckConstraint(
                condition=Q(carried_from__isnull=True) | Q(source="carried"), name="label_carried_from"
            ),
        ]
        indexes = [
            models.Index(
                fields=["criterion", "chat"],
                name="label_criterion_chat",
                condition=Q(state="submitted", post_reveal=False),
            ),
            models.Index(fields=["rater", "given_at"], name="label_rater"),
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} {self.criterion_id} {self.rater_id}"

    @property
    def blind(self) -> bool:
        """Whether it was submitted before its rater could see others' answers."""
        return self.state == Label.State.SUBMITTED and not self.post_reveal


def counting_versions() -> models.QuerySet[CriterionVersion]:
    """Return the versions of all criteria whose labels count.

    For each criterion these are the versions with the latest question that has a given label; without any
    label, all versions. After a rewording, the old labels count until the first label to the new question.
    Versions with the same meaning ask the same question; a restored question is the latest one.
    """
    versions = CriterionVersion.objects.order_by()
    same = versions.filter(criterion=OuterRef("criterion"), meaning=OuterRef("meaning"))
    asked_last = Subquery(same.values("criterion").values(last=Max("number")))
    answered = Exists(Label.objects.given().filter(version=OuterRef("pk")))
    later = (
        versions.filter(criterion=OuterRef("criterion"))
        .exclude(meaning=OuterRef("meaning"))
        .annotate(asked=asked_last)
        .filter(answered, asked__gt=OuterRef("asked"))
    )
    return versions.annotate(asked=asked_last).filter(~Exists(later))


class LabelRevision(models.Model):
    """One saved answer in a label's history; append-only."""

    label = models.ForeignKey(Label, on_delete=models.PROTECT, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    client_id = models.UUIDField()
    value = models.BooleanField(null=True, blank=True)
    rationale = models.TextField(blank=True, default="")
    evidence = models.JSONField(default=list)
    version = models.ForeignKey(CriterionVersion, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=9, choices=Label.State.choices)
    post_reveal = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["label", "number"], name="labelrevision_number"),
            models.UniqueConstraint(fields=["label", "client_id"], name="labelrevision_client"),
        ]

    def __str__(self) -> str:
        return f"{self.label_id} r{self.number}"


class Adjudication(models.Model):
    """A lead's decision on (chat, criterion); the one that is not replaced is current."""

    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    value = models.BooleanField(null=True, blank=True)
    reason = models.TextField()
    by_name = models.CharField(max_length=120)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # The retired criterion that the lead decided on, where the decision carried over.
    carried_from = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["chat", "criterion"],
                name="adjudication_current",
                condition=Q(replaced_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} {self.criterion_id}"


class Consensus(models.Model):
    """The result of the submitted labels on (chat, criterion), written in the labels' transaction."""

    class State(models.TextChoices):
        TRUE = "true", "True"
        FALSE = "false", "False"
        NA = "na", "Not applicable"
        UNRESOLVED = "unresolved", "Unresolved"

    # Only these are compared with verdicts.
    ANSWERED = (State.TRUE, State.FALSE)

    class By(models.TextChoices):
        MAJORITY = "majority", "Majority"
        ADJUDICATION = "adjudication", "Adjudication"

    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+", db_index=False)
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=10, choices=State.choices)
    by = models.CharField(max_length=12, choices=By.choices, default=By.MAJORITY)
    n_true = models.PositiveIntegerField(default=0)
    n_false = models.PositiveIntegerField(default=0)
    n_na = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chat", "criterion"], name="consensus_once")]
        indexes = [models.Index(fields=["criterion", "chat", "state"], name="consensus_value")]

    def __str__(self) -> str:
        return f"{self.chat_id} {self.criterion_id} {self.state}"


class RaterNote(models.Model):
    """A rater's note: unclear criterion, flagged chat or comment."""

    class Kind(models.TextChoices):
        UNCLEAR = "unclear", "Criterion unclear"
        FLAG = "flag", "For the lead"
        COMMENT = "comment", "Comment"

    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="+")
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # The criterion's text at that time.
    version = models.ForeignKey(
        CriterionVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    kind = models.CharField(max_length=7, choices=Kind.choices)
    text = models.TextField()
    client_id = models.UUIDField()
    created_at = models.DateTimeField(auto_now_add=True)
    settled_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rater", "client_id"], name="raternote_client")]
        indexes = [models.Index(fields=["criterion", "kind", "-id"], name="raternote_criterion")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.rater_id}"


# The skip reason of an assignment whose lease expired and that another rater got.
EXPIRED = "lease expired"


def through_with() -> Q:
    """Build the condition on assignments that their rater has submitted or skipped them."""
    skipped = Q(state=Assignment.State.SKIPPED) & ~Q(skip_reason=EXPIRED)
    return Q(state=Assignment.State.SUBMITTED) | skipped
