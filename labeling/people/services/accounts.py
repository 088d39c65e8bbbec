"""Changes of accounts, whoever makes them, are logged; a new password revokes tokens and sends a notice."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.db.models.signals import m2m_changed, post_save, pre_save

from labeling.models.people import ApiToken, Role, User
from labeling.people.services.audit import acting, acting_user, audit, rights_are_logged
from labeling.people.services.mail import notice_send
from labeling.people.services.tokens import token_revoke

FLAGS = {"is_superuser", "is_staff", "is_active"}
PASSWORD_CHANGED = "the password changed"  # noqa: S105  a reason in the log


# What somebody who knows the product would try first, in any case and with digits and signs around it.
GUESSED_FIRST = (
    "lace",
    "workbench",
    "laceworkbench",
    "chatbot",
    "judge",
    "admin",
    "administrator",
    "password",
)


class NoWordOfOurs:
    """Refuses passwords that are a word of the product or a role, with digits or signs around it."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError for such a password."""
        letters = "".join(filter(str.isalpha, password)).casefold()
        if letters in {*GUESSED_FIRST, *(role.value for role in Role), *(f"{role.value}s" for role in Role)}:
            raise ValidationError("This password is a word of the workbench. Use other words.")

    def get_help_text(self) -> str:
        """Return the help shown beside the new password."""
        return "Words of the workbench and of its roles are no password."


class TokensEndWithPassword:
    """Django calls `password_changed` of its validators after each change, by any page or command."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept every password."""

    def get_help_text(self) -> str:
        """Return the help shown beside the new password."""
        return "A new password ends your other sessions and revokes your API tokens."

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Log it, revoke the user's tokens and tell the user. An account's first password is part of it."""
        if user is None:
            return
        tokens_revoke(user=user)
        if not user.is_new:
            audit(actor=acting_user(), verb="password changed", obj=user, user=user.get_username())
            notice_send(user=user, what="Your password was changed.")


def tokens_revoke(*, user: User) -> None:
    """Revoke all tokens of a user whose password changed, with a line in the log for each."""
    for token in ApiToken.objects.filter(user=user, revoked_at=None):
        token_revoke(token=token, by=acting_user(), reason=PASSWORD_CHANGED)


def watch() -> None:
    """Log changes of roles and rights also where Django's admin or a command makes them."""
    for relation in (User.groups.through, User.user_permissions.through):
        m2m_changed.connect(_rights_changed, sender=relation, dispatch_uid=f"log {relation.__name__}")
    pre_save.connect(_account_changed, sender=User, dispatch_uid="log account changes")
    post_save.connect(_account_created, sender=User, dispatch_uid="log new accounts")


def _rights_changed(
    *, instance: Any, action: str, model: type[Any], pk_set: Collection[int] | None, **_: Any
) -> None:
    """Log one event for each user whose groups or own permissions change."""
    if action not in ("post_add", "pre_remove", "pre_clear"):
        return
    if isinstance(instance, User):
        users, given = [instance], _named(model, instance, pk_set)
    else:
        users, given = list(_users(instance, pk_set)), {_name(instance)}
    for user in users:
        now = _rights(user)
        others = [right for right in now if right not in given]
        _log(user, *((others, now) if action == "post_add" else (now, others)))


def _account_changed(*, instance: User, update_fields: Collection[str] | None, **_: Any) -> None:
    """Log a change of the flags; revoke the tokens of an account that loses its password."""
    if instance.pk is None or (update_fields is not None and FLAGS.isdisjoint(update_fields)):
        return
    stored = User.objects.filter(pk=instance.pk).first()
    if stored is None:
        return
    _log(instance, _rights(stored), _rights(instance))
    if stored.has_usable_password() and not instance.has_usable_password():
        tokens_revoke(user=instance)
        audit(actor=acting_user(), verb="password removed", obj=instance, user=instance.get_username())
        notice_send(user=instance, what="Your password was removed.")


def _account_created(*, instance: User, created: bool, **_: Any) -> None:
    if created:
        _log(instance, [], _flags(instance))


@contextmanager
def rights_change(*, of: User, by: User) -> Iterator[None]:
    """Log all changes of roles and rights in here as one."""
    old = _rights(of)
    with acting(by, rights_logged=True):
        yield
    with acting(by):
        _log(of, old, _rights(of))


def _log(user: User, old: list[str], new: list[str]) -> None:
    if old != new and not rights_are_logged():
        roles = {"old": old, "new": new}
        audit(actor=acting_user(), verb="roles changed", obj=user, user=user.get_username(), roles=roles)


def _rights(user: User) -> list[str]:
    """Return the stored groups and own permissions, and this row's flags."""
    groups = Group.objects.filter(user=user).values_list("name", flat=True)
    own = Permission.objects.filter(user=user).values_list("codename", flat=True)
    return sorted([*groups, *own]) + _flags(user)


def _flags(user: User) -> list[str]:
    flags = {"superuser": user.is_superuser, "staff": user.is_staff, "inactive": not user.is_active}
    return [name for name, is_set in flags.items() if is_set]


def _named(model: type[Any], user: User, pk_set: Collection[int] | None) -> set[str]:
    rows = model.objects.filter(user=user) if pk_set is None else model.objects.filter(pk__in=pk_set)
    return {_name(row) for row in rows}


def _users(row: Group | Permission, pk_set: Collection[int] | None) -> Collection[User]:
    return row.user_set.all() if pk_set is None else User.objects.filter(pk__in=pk_set)


def _name(row: Group | Permission) -> str:
    return row.codename if isinstance(row, Permission) else row.name
