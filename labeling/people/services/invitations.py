"""Invitations, by link or e-mail, and the first account of an empty workspace."""

import hashlib
import secrets
from base64 import b32encode
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.views.decorators.debug import sensitive_variables

from common.problems import FieldProblem, InputProblem
from labeling.models.people import Invitation, Role, User, Workspace
from labeling.people.queries.people import accounts_exist, open_invitations
from labeling.people.services.audit import audit
from labeling.people.services.mail import mail_send, site_address
from labeling.people.services.people import account_make, lead_lock

VALID = timedelta(days=7)
CODE_LETTERS, CODE_PART = 20, 5
ENDED = "This invitation was used, revoked or has expired. Ask a lead for a new one."
WRONG_CODE = "this is not the setup code of this workspace; serve prints it when it starts"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation; `secret` goes into the link and is not stored."""

    invitation: Invitation
    secret: str = field(repr=False)


@sensitive_variables("secret")
@transaction.atomic
def invitation_create(*, by: User, role: str, name: str = "", email: str = "") -> NewInvitation:
    """Create an invitation for one person, valid for 7 days. Raises FieldProblem."""
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
    return NewInvitation(invitation, secret)


@sensitive_variables("secret")
@transaction.atomic
def invitation_renew(*, invitation: Invitation, by: User) -> NewInvitation:
    """Make a new link, valid for 7 days; the one before ends. Raises InputProblem for an ended invitation."""
    row = open_invitations().select_for_update(of=("self",)).filter(pk=invitation.pk).first()
    if row is None:
        raise InputProblem("This invitation was used, revoked or has expired. Create a new one.")
    secret = secrets.token_urlsafe(32)
    row.digest, row.expires_at, row.mailed_at = digest(secret), timezone.now() + VALID, None
    row.save(update_fields=["digest", "expires_at", "mailed_at"])
    audit(actor=by, verb="invitation renewed", obj=row, role=row.role, name=row.name, email=row.email)
    return NewInvitation(row, secret)


@sensitive_variables("link", "text", "new")
def invitation_mail(*, new: NewInvitation, by: User) -> bool | None:
    """Send the link to the invited person; None where there is no mail server or address, False on failure.

    NB: outside a transaction: a mail server may take seconds.
    """
    row = new.invitation
    if not settings.INBOX_MAIL or not row.email:
        return None
    link = site_address(reverse("labeling:join", kwargs={"token": new.secret}))
    name = " ".join((by.get_full_name() or by.get_username()).split())
    context = {"by": name, "role": Role(row.role).label.lower(), "until": timezone.localtime(row.expires_at)}
    text = render_to_string("labeling/people/mail/invitation.txt", {**context, "link": link})
    if not mail_send(to=row.email, subject="invitation", text=text):
        return False
    Invitation.objects.filter(pk=row.pk).update(mailed_at=timezone.now())
    return True


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
