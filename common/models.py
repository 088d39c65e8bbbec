"""What a user has typed into a form and not sent yet."""

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
