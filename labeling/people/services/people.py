"""Accounts as leads manage them: create, change, deactivate, groups. One active lead always remains."""

from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from common.problems import FieldProblem, InputProblem
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import ApiToken, Role, User
from labeling.people.services.accounts import rights_change
from labeling.people.services.audit import acting, audit
from labeling.people.services.rights import check_manages
from labeling.people.services.sessions import sessions_end
from labeling.people.services.sign_in import reset_path
from labeling.people.services.tokens import token_revoke

DEACTIVATED = "the account was deactivated"
LAST_LEAD = "This is the last active lead. Make another account a lead first."


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A new account and the address, without host, at which its user sets a password."""

    user: User
    path: str


def lead_lock() -> Group:
    """Lock the group of leads: who takes a lead away, or makes the first one, does so one after another."""
    return Group.objects.select_for_update().get(name=Role.LEAD)


@transaction.atomic
def account_create(*, by: User, username: str, name: str, email: str, roles: Collection[str]) -> NewAccount:
    """
    Create an account without a password; its user sets one at the address in the result.

    Raises FieldProblem.
    """
    if not roles:
        raise FieldProblem("roles", "choose at least one role")
    user = account_make(by=by, username=username, name=name, email=email, roles=roles)
    return NewAccount(user, reset_path(user))


@transaction.atomic
def account_make(
    *, by: User | None, username: str, name: str, email: str, roles: Collection[str], password: str = ""
) -> User:
    """Create an account with these roles. `by`: None where its user creates it. Raises FieldProblem."""
    username, email = username.strip(), _email(email)
    _check_username(username)
    _check_email(email, of=None)
    # NB: without a password none is usable: nobody can sign in before its user sets one.
    user = User(username=username, first_name=name.strip()[:150], email=email)
    user.set_password(password or None)
    user.save()
    known = _known(roles)
    with acting(by or user, rights_logged=True):
        user.groups.set(Group.objects.filter(name__in=known))
    own = {"name": name, "email": email, "roles": sorted(known)}
    audit(actor=by or user, verb="account created", obj=user, user=username, **own)
    return user


@transaction.atomic
def account_change(
    *, person: User, by: User, name: str, email: str, roles: Collection[str], groups: Collection[Group]
) -> User:
    """Set name, e-mail, roles and groups; log each change. Raises FieldProblem, InputProblem."""
    check_manages(person=person, by=by)
    lead = lead_lock()
    stored = User.objects.select_for_update().get(pk=person.pk)
    if Role.LEAD not in roles and stored.groups.filter(pk=lead.pk).exists():
        _check_another_lead(stored, lead, field="roles")
    email = _email(email)
    _check_email(email, of=stored)
    new = {"name": name.strip(), "email": email}
    old = {"name": stored.get_full_name(), "email": stored.email}
    if changed := {key: {"old": old[key], "new": new[key]} for key in new if old[key] != new[key]}:
        if "name" in changed:
            stored.first_name, stored.last_name = new["name"][:150], ""
        stored.email = email
        stored.save(update_fields=["first_name", "last_name", "email"])
        audit(actor=by, verb="account changed", obj=stored, user=stored.username, **changed)
    with rights_change(of=stored, by=by):
        stored.groups.set([*Group.objects.filter(name__in=_known(roles)), *groups])
    return stored


@transaction.atomic
def account_deactivate(*, person: User, by: User) -> None:
    """
    End an account's access at once: sessions and API tokens end, chats in work return to the queue.

    Labels and drafts stay. Raises InputProblem for the last lead and for one's own account.
    """
    check_manages(person=person, by=by)
    if person.pk == by.pk:
        raise InputProblem("You cannot deactivate your own account. Ask another lead.")
    lead = lead_lock()
    stored = User.objects.select_for_update().get(pk=person.pk)
    if not stored.is_active:
        return
    if stored.groups.filter(pk=lead.pk).exists():
        _check_another_lead(stored, lead)
    stored.is_active = False
    with acting(by, rights_logged=True):
        stored.save(update_fields=["is_active"])
        for token in ApiToken.objects.filter(user=stored, revoked_at=None):
            token_revoke(token=token, by=by, reason=DEACTIVATED)
    leased = Assignment.objects.filter(rater__user=stored, state=Assignment.State.LEASED)
    freed = leased.update(lease_expires_at=timezone.now())
    audit(actor=by, verb="account deactivated", obj=stored, user=stored.username, chats_returned=freed)
    sessions_end(user=stored)


@transaction.atomic
def account_activate(*, person: User, by: User) -> None:
    """Give an account its access back, with its roles; its password still works."""
    check_manages(person=person, by=by)
    stored = User.objects.select_for_update().get(pk=person.pk)
    if not stored.is_active:
        stored.is_active = True
        with acting(by, rights_logged=True):
            stored.save(update_fields=["is_active"])
        audit(actor=by, verb="account activated", obj=stored, user=stored.username)


@transaction.atomic
def password_path(*, person: User, by: User) -> str:
    """Return an address, without host, at which the user sets a new password; log that it was made."""
    check_manages(person=person, by=by)
    if not person.is_active:
        raise InputProblem("This account is deactivated. Activate it first.")
    audit(actor=by, verb="reset-link created", obj=person, user=person.username)
    return reset_path(person)


@transaction.atomic
def group_create(*, name: str, by: User) -> Group:
    """Create a group of raters, to which labelling jobs can go. Raises FieldProblem."""
    name = " ".join(name.split())
    if not name:
        raise FieldProblem("name", "enter a name for the group")
    if Group.objects.filter(name__iexact=name).exists():
        raise FieldProblem("name", "a group or role with this name exists; choose another name")
    group = Group.objects.create(name=name)
    audit(actor=by, verb="group created", obj=group, name=name)
    return group


@transaction.atomic
def group_delete(*, group: Group, by: User) -> None:
    """Delete a group of raters. Raises InputProblem for a role and for a group that a job names."""
    if group.name in Role.values or group.permissions.exists():
        raise InputProblem(f"{group.name} gives rights and cannot be deleted.")
    if (jobs := LabelingJob.objects.filter(group=group).count()) > 0:
        raise InputProblem(f"{group.name} is named by {jobs} labelling jobs and cannot be deleted.")
    members = sorted(group.user_set.values_list("username", flat=True))
    audit(actor=by, verb="group deleted", obj=group, name=group.name, members=members)
    with acting(by):
        group.user_set.clear()
    group.delete()


def _check_another_lead(user: User, lead: Group, *, field: str = "") -> None:
    """Raise where no other lead could sign in."""
    others = User.objects.filter(groups=lead, is_active=True).exclude(pk=user.pk)
    # NB: accounts that nobody can sign in to yet have no usable password; Django marks it with "!".
    ways_in = ~Q(password__startswith="!")  # noqa: S106
    if settings.LACE_SSO_ISSUER:
        ways_in |= Q(socialaccount__isnull=False)
    if user.is_active and not others.filter(ways_in).exists():
        raise FieldProblem(field, LAST_LEAD) if field else InputProblem(LAST_LEAD)


def _known(roles: Collection[str]) -> list[str]:
    if unknown := [role for role in roles if role not in Role.values]:
        raise FieldProblem("roles", f"there is no role {unknown[0]}")
    return list(roles)


def _check_username(username: str) -> None:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError:
        raise FieldProblem("username", "use letters, digits and @ . + - _ only, without spaces") from None
    if len(username) > 150:
        raise FieldProblem("username", "use at most 150 characters")
    if User.objects.filter(username__iexact=username).exists():
        raise FieldProblem("username", "an account with this user name exists; choose another one")


def _email(email: str) -> str:
    return email.strip().lower()


def _check_email(email: str, *, of: User | None) -> None:
    """Raise where it is no address, or another account has it: people sign in with it."""
    if not email:
        return
    try:
        validate_email(email)
    except ValidationError:
        raise FieldProblem("email", "this is not an e-mail address") from None
    same = User.objects.filter(email__iexact=email)
    if (same.exclude(pk=of.pk) if of else same).exists():
        raise FieldProblem("email", "another account has this e-mail address")
