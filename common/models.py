"""What concerns users on every page: drafts of forms, the inbox, comments."""

from django.conf import settings
from django.db import models


class FormDraft(models.Model):
    """The draft of one form by one user.

    `key` is the form's address and place on its page. `values` has the values by name of the control.
    `base` marks the values with which the page was shown; `revision` counts the saves.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=500)
    values = models.JSONField()
    base = models.CharField(max_length=32)
    revision = models.PositiveIntegerField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_draft_a_form")]

    def __str__(self) -> str:
        return self.key


class InboxItem(models.Model):
    """Something that a user should know of: who did what to which subject.

    `subject` is KIND:ID (common/inbox/subjects.py). The same thing happening again renews the item.
    """

    class Kind(models.TextChoices):
        ASSIGNED = "assigned", "Assigned"
        MENTIONED = "mentioned", "Mentioned"
        ANSWERED = "answered", "Answered"
        RELEASE = "release", "Release asked"
        REDESIGN = "redesign", "Redesign proposed"
        WORDING = "wording", "Confirm the wording"
        FINISHED = "finished", "Job finished"
        PAUSED = "paused", "Run paused"
        NIGHTLY = "nightly", "Sample plan stopped"
        STOPPED = "stopped", "Switched off"
        ALERT = "alert", "Alert"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    subject = models.CharField(max_length=60)
    # Null: the workbench itself.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind", "subject"], name="one_inbox_item")]
        indexes = [models.Index(fields=["user", "read_at", "-at"], name="inboxitem_listed")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class InboxChoice(models.Model):
    """What a user has chosen about the inbox."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    by_mail = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"inbox of {self.user_id}"


class Comment(models.Model):
    """A comment in the thread of a subject, KIND:ID; append-only."""

    subject = models.CharField(max_length=60)
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["subject", "id"], name="comment_thread")]

    def __str__(self) -> str:
        return f"{self.by_id} on {self.subject}"


class CacheEntry(models.Model):
    """A row of Django's cache in the database, which all processes share; written by the cache alone."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.cache_key
