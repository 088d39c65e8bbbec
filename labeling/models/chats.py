"""Chats, topics and chat sets."""

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Q

from labeling.models.people import User
from labeling.models.rubric import Rubric

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser


class Split(models.TextChoices):
    """The permitted use of a chat in a set."""

    TRAIN = "train", "train"
    DEV = "dev", "dev"
    HOLDOUT = "holdout", "holdout"


class Topic(models.Model):
    """The stratum of a chat; its key is the text as imported."""

    UNKNOWN = "unknown"

    key = models.CharField(max_length=200)
    name = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="topic_key")]

    def __str__(self) -> str:
        return self.name


class ChatQuerySet(models.QuerySet["Chat"]):
    """Filters of chats."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Exclude chats that are holdout in any set, unless the user may see those."""
        if user.has_perm("labeling.see_holdout"):
            return self
        holdout = ChatSetMember.objects.filter(split=Split.HOLDOUT).values("chat_id")
        return self.exclude(pk__in=holdout)


class Chat(models.Model):
    """One multi-turn conversation; its messages never change for the same external id."""

    class Origin(models.TextChoices):
        IMPORT = "import", "Imported"
        API = "api", "API"
        DEMO = "demo", "Written for the demo"

    external_id = models.CharField(max_length=200)
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="chats")
    started_at = models.DateTimeField(null=True, blank=True)
    # [{"n": 1, "role": "user", "content": "…", "created_at"?: "…"}]; one column imports 7 times faster.
    messages = models.JSONField()
    content_hash = models.CharField(max_length=64)
    near_hash = models.BigIntegerField(null=True, blank=True)
    message_count = models.PositiveIntegerField()
    char_count = models.PositiveIntegerField()
    experiment = models.CharField(max_length=80, blank=True, default="")
    variant = models.CharField(max_length=80, blank=True, default="")
    # Chats of one cluster belong together, as those of one customer: statistics count them as one unit.
    cluster = models.CharField(max_length=200, blank=True, default="")
    metadata = models.JSONField(default=dict)
    redactions = models.JSONField(default=list)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.IMPORT)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ChatQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["external_id"], name="chat_external_id")]
        indexes = [
            models.Index(fields=["content_hash"], name="chat_content_hash"),
            models.Index(fields=["topic", "started_at"], name="chat_topic_started"),
            models.Index(
                fields=["experiment", "variant", "started_at"],
                name="chat_experiment",
                condition=~Q(experiment=""),
            ),
            models.Index(fields=["cluster"], name="chat_cluster", condition=~Q(cluster="")),
        ]

    def __str__(self) -> str:
        return self.external_id

    @property
    def title(self) -> str:
        """Return the chat's title, else its topic."""
        return str(self.metadata.get("title") or self.topic.name)


class ChatSet(models.Model):
    """A named, curated set of chats for one rubric."""

    class Kind(models.TextChoices):
        CURATED = "curated", "Curated"
        SAMPLE = "sample", "Sample"
        GOLD = "gold", "Gold"
        CALIBRATION = "calibration", "Calibration"

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.CURATED)
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="chat_sets")
    sampling = models.JSONField(null=True, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="chatset_name")]

    def __str__(self) -> str:
        return self.name


class ChatSetMember(models.Model):
    """A chat's position and split in a set."""

    chat_set = models.ForeignKey(ChatSet, on_delete=models.PROTECT, related_name="members")
    chat = models.ForeignKey(Chat, on_delete=models.PROTECT, related_name="memberships")
    split = models.CharField(max_length=8, choices=Split.choices, default=Split.DEV)
    position = models.PositiveIntegerField()
    stratum = models.CharField(max_length=200, blank=True, default="")
    inclusion_probability = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["chat_set", "chat"], name="member_once"),
            models.UniqueConstraint(fields=["chat_set", "position"], name="member_position"),
            models.CheckConstraint(
                condition=Q(inclusion_probability__isnull=True)
                | Q(inclusion_probability__gt=0, inclusion_probability__lte=1),
                name="member_probability",
            ),
        ]
        indexes = [models.Index(fields=["chat", "split"], name="member_chat")]

    def __str__(self) -> str:
        return f"{self.chat_set_id}: {self.chat_id}"
