"""Accounts, raters and the workspace."""

import secrets
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models, transaction


class Role(models.TextChoices):
    """The three roles; each is a Django group of this name."""

    RATER = "rater", "Rater"
    AUTHOR = "author", "Prompt author"
    LEAD = "lead", "Lead"


class User(AbstractUser):
    """An account. Raters are separate: labels may come from raters without an account."""

    # When the user last opened a page, to the hour.
    last_seen_at = models.DateTimeField(null=True, blank=True, editable=False)

    # Scopes of this request's token; None: no token, all permissions of the user.
    scopes: frozenset[str] | None = None
    # Whether the account has to set up a second factor first: annotated where it is asked.
    second_factor_due: bool = False
    # Whether the account is made here and now.
    is_new: bool = False

    class Meta:
        permissions = [
            ("label_chats", "Can label the chats of own assignments"),
            ("see_judge", "Can see runs, verdicts and alignment"),
            ("edit_prompts", "Can write prompt versions"),
            ("see_holdout", "Can see the chats of holdout splits"),
            ("manage_labeling", "Can open labelling jobs and adjudicate"),
            ("start_runs", "Can start runs"),
            ("release_prompts", "Can release what the regression gate has tested"),
            ("send_chats", "Can send chats"),
            ("read_metrics", "Can read metrics of experiments"),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save with what follows from it, or not at all: a new password revokes the user's tokens."""
        self.is_new = self._state.adding
        with transaction.atomic():
            super().save(*args, **kwargs)

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Whether the user has the permission and, with a token, the token has the scope."""
        if self.scopes is not None and perm.removeprefix("labeling.") not in self.scopes:
            return False
        return super().has_perm(perm, obj)

    def is_allowed(self, codename: str) -> bool:
        """Whether the account has the permission, regardless of the request's token."""
        return super().has_perm(f"labeling.{codename}")

    @property
    def sees_answers(self) -> bool:
        """Whether the account may read verdicts or others' labels."""
        return self.is_allowed("see_judge") or self.is_allowed("manage_labeling")


class Rater(models.Model):
    """The source of a label: a human rater, an automatic signal, or an invented rater of the demo."""

    class Kind(models.TextChoices):
        PERSON = "person", "Person"
        AUTOMATIC = "automatic", "Automatic"
        DEMO = "demo", "Written for the demo"

    name = models.CharField(max_length=120)
    user = models.OneToOneField(User, on_delete=models.PROTECT, null=True, blank=True, related_name="rater")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.PERSON)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="rater_name")]

    def __str__(self) -> str:
        return self.name


def new_secret() -> bytes:
    """Return 32 random bytes for the fence around chats in prompts."""
    return secrets.token_bytes(32)


class SecondFactor(models.TextChoices):
    """Who has to have a second factor."""

    OFF = "off", "Nobody"
    LEADS = "leads", "Leads"
    ALL = "all", "Everybody"


class Workspace(models.Model):
    """The one row of workspace-wide settings."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    fence_secret = models.BinaryField(default=new_secret, editable=False)
    # After submitting, a rater may see the judge's verdict; later changes are marked post-reveal.
    reveal_after_submit = models.BooleanField(default=False)
    evidence_on_false = models.BooleanField(default=False)
    comment_required = models.BooleanField(default=False)
    # Whether criteria of the tier `subjective` count in session scores.
    subjective_in_session_score = models.BooleanField(default=False)
    # Who has to use a second factor to sign in with a password.
    second_factor = models.CharField(
        max_length=5, choices=SecondFactor.choices, default=SecondFactor.OFF, db_default=SecondFactor.OFF
    )
    # Whether a lead has hidden the list of set-up steps on Home.
    set_up_hidden = models.BooleanField(default=False)
    # Everything in it is invented: pages say so, and the simulated judge answers here only.
    demo = models.BooleanField(default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="workspace_single")]

    def __str__(self) -> str:
        return "Workspace"

    @classmethod
    def current(cls) -> "Workspace":
        """Return the row, created on first use."""
        return cls.objects.get_or_create(id=1)[0]

    @classmethod
    def is_demo(cls) -> bool:
        """Return whether this is a demo workspace; one query."""
        return cls.objects.filter(demo=True).exists()


class AppendOnly(models.QuerySet["AuditEvent"]):
    """Rows that nobody changes or deletes; the database refuses it, too."""

    def update(self, **values: Any) -> int:
        """Refuse."""
        raise TypeError(APPEND_ONLY)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Refuse."""
        raise TypeError(APPEND_ONLY)


APPEND_ONLY = "the audit log is append-only"


class AuditEvent(models.Model):
    """
    An action of a user on an object; append-only: triggers refuse changes, whoever makes them.

    Old entries of sign-ins alone may be deleted (`labeling.people.core.SIGN_IN_VERBS`).
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    verb = models.CharField(max_length=40)
    object_type = models.CharField(max_length=40)
    object_id = models.BigIntegerField()
    detail = models.JSONField(default=dict)
    # Of the request that made the change; "" for workers and commands.
    request_id = models.CharField(max_length=32, default="", blank=True)
    # Of the client that asked; "" for workers and commands.
    address = models.CharField(max_length=39, default="", db_default="", blank=True)
    # Of the API token that a program used; "" for pages, workers and commands.
    token_name = models.CharField(max_length=120, default="", db_default="", blank=True)

    objects = AppendOnly.as_manager()

    class Meta:
        indexes = [models.Index(fields=["object_type", "object_id"], name="audit_object")]

    def __str__(self) -> str:
        return f"{self.verb} {self.object_type} {self.object_id}"

    def save(self, **options: Any) -> None:
        """Add the row. Raises TypeError for one that is stored."""
        if not self._state.adding:
            raise TypeError(APPEND_ONLY)
        super().save(**options)

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Refuse."""
        raise TypeError(APPEND_ONLY)


class ApiToken(models.Model):
    """A key for programs; only its digest is stored, its scopes limit its user's permissions."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["digest"], name="token_digest")]

    def __str__(self) -> str:
        return self.name


class Invitation(models.Model):
    """A link by which one person creates their own account; only the digest of its secret is stored."""

    role = models.CharField(max_length=10, choices=Role.choices)
    name = models.CharField(max_length=150, blank=True, default="")
    email = models.EmailField(blank=True, default="")
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    # When the newest link was sent by e-mail.
    mailed_at = models.DateTimeField(null=True, blank=True)
    used_by = models.OneToOneField(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="invitation_digest"),
            models.CheckConstraint(
                condition=models.Q(used_by__isnull=True, used_at__isnull=True)
                | models.Q(used_by__isnull=False, used_at__isnull=False, revoked_at__isnull=True),
                name="invitation_used_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.get_role_display()


class AccountMail(models.Model):
    """An e-mail about an account that waits, or could not be sent; one that was sent is deleted.

    Links in it are made when it is sent: no table has their secrets.
    """

    class Kind(models.TextChoices):
        INVITATION = "invitation", "Invitation"
        RESET = "reset", "Link for a new password"
        NOTICE = "notice", "Notice"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        FAILED = "failed", "Failed"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    to = models.EmailField(max_length=320)
    # Of a notice; the worker writes the others.
    text = models.TextField(blank=True, default="")
    invitation = models.ForeignKey(
        Invitation, on_delete=models.CASCADE, null=True, blank=True, related_name="mails"
    )
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    # In words, without server or address.
    error = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["state", "next_at"], name="accountmail_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
