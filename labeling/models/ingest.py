"""Chats that arrive in production: the workspace's rules for them, their sources, requests to answer once."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from labeling.models.people import User, new_secret


class IngestSettings(models.Model):
    """The one row of rules for chats that come in: redaction, topics, retention."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    # Keys the hashes of what was redacted; another key would make them useless.
    redaction_key = models.BinaryField(default=new_secret, editable=False)
    # Kinds of personal data that are redacted; empty: none.
    redact = models.JSONField(default=list, blank=True)
    # ISO 3166 codes of the countries whose phone numbers are read without "+".
    regions = models.JSONField(default=list, blank=True)
    # [{"topic", "any"?, "all"?, "none"?, "said_by"?, "metadata"?}], the first that fits wins.
    topic_rules = models.JSONField(default=list, blank=True)
    # Chats this old lose their text; null keeps it.
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    # When the last search for texts to delete found none left, and how many chats lost theirs so far.
    retention_done_at = models.DateTimeField(null=True, blank=True)
    texts_deleted = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="ingestsettings_single"),
            models.CheckConstraint(
                condition=Q(retention_days=None) | Q(retention_days__gte=1), name="ingestsettings_days"
            ),
        ]

    def __str__(self) -> str:
        return "Incoming chats"

    @classmethod
    def current(cls) -> "IngestSettings":
        """Return the row, or the defaults where nobody has changed them; it writes nothing."""
        return cls.objects.filter(id=1).first() or cls()


class ChatSource(models.Model):
    """A system that sends chats, and what came of them."""

    COUNTS: ClassVar = ("received", "created", "updated", "unchanged", "refused")

    name = models.CharField(max_length=80)
    first_at = models.DateTimeField(auto_now_add=True)
    last_at = models.DateTimeField(auto_now_add=True)
    received = models.PositiveBigIntegerField(default=0)
    created = models.PositiveBigIntegerField(default=0)
    updated = models.PositiveBigIntegerField(default=0)
    unchanged = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    # Passages redacted in chats that were created or grew, by kind.
    redactions = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="chatsource_name")]

    def __str__(self) -> str:
        return self.name


class IngestRequest(models.Model):
    """A request with an Idempotency-Key: sent again, it has the same answer."""

    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=200)
    # SHA-256 of the body.
    digest = models.CharField(max_length=64)
    # null while the request is at work.
    answer = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["by", "key"], name="ingestrequest_key")]
        indexes = [models.Index(fields=["started_at"], name="ingestrequest_started")]

    def __str__(self) -> str:
        return self.key
