"""Invitations, by link or e-mail, and the first account of an empty workspace."""

import hashlib
import secrets
from base64 import b32encode
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.views.decorators.debug import sensitive_variables

from common.problems import FieldProblem, InputProblem
from labeling.models.people import AccountMail, Invitation, Role, User, Workspace
from labeling.people.queries.people import accounts_exist, open_invitations
from labeling.people.services.audit import audit
from labeling.people.services.mail import invitation_mail
from labeling.people.services.people import account_make, lead_lock

VALID = timedelta(days=7)
CODE_LETTERS, CODE_PART = 20, 5
ENDED = "This invitation was used, revoked or has expired. Ask a lead for a new one."
WRONG_CODE = "this is not the setup code of this workspace; serve prints it when it starts"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """
    A new invitation; `secret` goes into the link and is not stored.

    by_mail : whether a link is sent by e-mail, in place of this one.
    """

    invitation: Invitation
    secret: str = field(repr=False)
    by_mail: bool


@sensitive_variables("secret")
@transaction.atomic
def invitation_create(*, by: User, role: str, name: str = "", email: str = "") -> NewInvitation:
    """Create an invitation for one person, valid for 7 days; send it if it can be. Raises FieldProblem."""
    if role not in Role.values:
        raise FieldProblem("role", "choose a role")
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        role=role,
        name=name.strip()[:150],
        email=email.strip().lower(),
        digest=digest(secret),
        created_by=by,
        expires_at=timezone.now() + VALID,
    )
    known = {"role": role, "name": invitation.name, "email": invitation.email}
    audit(actor=by, verb="invitation created", obj=invitation, **known)
    return NewInvitation(invitation, secret, invitation_mail(invitation=invitation))


@sensitive_variables("secret")
@transaction.atomic
def invitation_renew(*, invitation: Invitation, by: User, by_mail: bool) -> NewInvitation:
    """
    Make a new link, valid for 7 days; the one before ends.

    by_mail : whether to send it, if it can be.

    Raises InputProblem for an ended invitation.
    """
    row = open_invitations().select_for_update(of=("self",)).filter(pk=invitation.pk).first()
    if row is None:
        raise InputProblem("This invitation was used, revoked or has expired. Create a new one.")
    secret = secrets.token_urlsafe(32)
    row.digest, row.expires_at, row.mailed_at = digest(secret), timezone.now() + VALID, None
    row.save(update_fields=["digest", "expires_at", "mailed_at"])
    # NB: an e-mail on its way would end this link.
    AccountMail.objects.filter(invitation=row).delete()
    audit(actor=by, verb="invitation renewed", obj=row, role=row.role, name=row.name, email=row.email)
    return NewInvitation(row, secret, by_mail and invitation_mail(invitation=row))


def invitation_of(*, secret: str) -> Invitation | None:
    """Return the invitation of a link while it opens something."""
    return open_invitations().filter(digest=digest(secret)).first()


@transaction.atomic
def invitation_revoke(*, invitation: Invitation, by: User) -> bool:
    """End an invitation; False where it was used or ended before."""
    unused = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if not unused.update(revoked_at=timezone.now()):
        return False
    audit(actor=by, verb="invitation revoked", obj=invitation, role=invitation.role, name=invitation.name)
    return True


@sensitive_variables("secret", "password")
@transaction.atomic
def invitation_accept(*, secret: str, username: str, name: str, email: str, password: str) -> User:
    """
    Create the account of an invited person and use the invitation up.

    Raises FieldProblem, and InputProblem where the invitation no longer opens anything.
    """
    # NB: `of`: PostgreSQL locks no row of an outer join.
    invitation = open_invitations().select_for_update(of=("self",)).filter(digest=digest(secret)).first()
    if invitation is None:
        raise InputProblem(ENDED)
    check_password(password, username=username, name=name, email=email)
    user = account_make(
        by=None, username=username, name=name, email=email, roles=[invitation.role], password=password
    )
    invitation.used_by, invitation.used_at = user, timezone.now()
    invitation.save(update_fields=["used_by", "used_at"])
    audit(actor=user, verb="invitation accepted", obj=invitation, role=invitation.role)
    return user


# ---------- the first account ----------


def setup_code() -> str:
    """Return the code that creates the first account, as ABCDE-FGHIJ-…; the same until then.

    It follows from SECRET_KEY and a secret of this database, so that neither alone reveals it.
    """
    own = bytes(Workspace.current().fence_secret)
    mac = salted_hmac("labeling.people.setup_code", own, algorithm="sha256").digest()
    letters = b32encode(mac).decode()[:CODE_LETTERS]
    return "-".join(letters[at : at + CODE_PART] for at in range(0, CODE_LETTERS, CODE_PART))


@sensitive_variables("code", "password")
@transaction.atomic
def first_lead_create(*, code: str, username: str, name: str, email: str, password: str) -> User:
    """
    Create the first account, a lead, for whoever knows the setup code.

    Raises FieldProblem, and InputProblem where an account exists.
    """
    lead_lock()
    if accounts_exist():
        raise InputProblem("This workspace has an account already. Sign in, or ask a lead.")
    if not constant_time_compare("".join(code.upper().split()), setup_code()):
        raise FieldProblem("code", WRONG_CODE)
    check_password(password, username=username, name=name, email=email)
    return account_make(
        by=None, username=username, name=name, email=email, roles=[Role.LEAD], password=password
    )


def check_password(password: str, *, username: str, name: str, email: str) -> None:
    """Raise FieldProblem for a password that is too short, too common or like the account's own words."""
    try:
        validate_password(password, User(username=username, first_name=name, email=email))
    except ValidationError as error:
        raise FieldProblem("password1", " ".join(error.messages)) from None


def digest(secret: str) -> str:
    """Return the stored form of a secret. NB: 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()
