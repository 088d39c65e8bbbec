"""Certificates: signed and immutable statements of what a judge may be used for."""

from django.db import models
from django.db.models import F, Q

from alignment.models.reports import Report
from evaluation.models.judges import Judge
from labeling.models.people import User


class Certificate(models.Model):
    """A signed statement about one judge; its validity is checked on each read."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")
    report = models.ForeignKey(Report, on_delete=models.PROTECT, related_name="+")
    # The signed content.
    body = models.JSONField()
    signature = models.CharField(max_length=100)
    # Verifies the signature, even after the key was changed.
    public_key = models.CharField(max_length=44)
    # Some figures are on fewer than 10 holdout chats: only leads see them.
    few_held_out = models.BooleanField(default=False)
    issued_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["signature"], name="certificate_signature"),
            models.CheckConstraint(condition=Q(expires_at__gt=F("issued_at")), name="certificate_period"),
            models.CheckConstraint(
                condition=Q(revoked_at=None, reason="") | Q(revoked_at__isnull=False) & ~Q(reason=""),
                name="certificate_revoked",
            ),
        ]

    def __str__(self) -> str:
        return f"Certificate {self.pk}"
