"""Every change of a role stands in the audit log with who, before and after, whoever makes it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from labeling.models.people import AuditEvent, Role, User
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


def logged(user: User) -> list[tuple[Any, Any]]:
    events = AuditEvent.objects.filter(verb="roles changed", object_id=user.pk).order_by("pk")
    return [(event.detail["roles"]["old"], event.detail["roles"]["new"]) for event in events]


def group(role: Role) -> Group:
    return Group.objects.get(name=role)


def test_a_command_that_gives_and_takes_roles_is_logged() -> None:
    user = make_user("mara", Role.RATER)
    user.groups.add(group(Role.LEAD))
    user.groups.add(group(Role.LEAD))
    user.groups.remove(group(Role.RATER))
    user.groups.clear()
    assert logged(user) == [(["rater"], ["lead", "rater"]), (["lead", "rater"], ["lead"]), (["lead"], [])]
    assert AuditEvent.objects.filter(verb="roles changed", actor=None).count() == 3


def test_the_same_from_the_groups_side_is_logged() -> None:
    user, other = make_user("mara"), make_user("otto")
    group(Role.LEAD).user_set.add(user, other)
    group(Role.LEAD).user_set.clear()
    assert logged(user) == logged(other) == [([], ["lead"]), (["lead"], [])]


def test_own_permissions_and_flags_are_rights_too() -> None:
    user = make_user("mara")
    user.user_permissions.add(Permission.objects.get(codename="release_prompts"))
    user.is_superuser = True
    user.save()
    user.is_active = False
    user.save(update_fields=["is_active"])
    own = ["release_prompts"]
    assert logged(user) == [
        ([], own),
        (own, [*own, "superuser"]),
        ([*own, "superuser"], [*own, "superuser", "inactive"]),
    ]


def test_a_new_superuser_is_logged() -> None:
    assert logged(User.objects.create_superuser("root")) == [([], ["superuser", "staff"])]


def test_admin_pages_name_the_superuser(client: Client) -> None:
    user, root = make_user("mara", Role.RATER), User.objects.create_superuser("root")
    client.force_login(root)
    page = client.get(f"/admin/labeling/user/{user.pk}/change/")
    form = page.context["adminform"].form
    body: dict[str, Any] = {name: value for name, value in form.initial.items() if isinstance(value, str)}
    body |= {"is_active": "on", "groups": [group(Role.LEAD).pk], "date_joined_0": "2026-01-01"}
    body |= {"date_joined_1": "10:00:00"}
    answer = client.post(f"/admin/labeling/user/{user.pk}/change/", body)
    assert answer.status_code == 302, answer.context["errors"]
    assert logged(user)[-1][1] == ["lead"]
    assert {event.actor for event in AuditEvent.objects.filter(object_id=user.pk)} == {root}


def test_changed_permissions_of_a_role_are_logged_and_a_role_is_never_deleted(client: Client) -> None:
    root, author = User.objects.create_superuser("root"), group(Role.AUTHOR)
    client.force_login(root)
    body = {"name": author.name, "permissions": [Permission.objects.get(codename="see_judge").pk]}
    assert client.post(f"/admin/auth/group/{author.pk}/change/", body).status_code == 302
    event = AuditEvent.objects.get(verb="role changed")
    old = ["edit_prompts", "read_metrics", "see_judge"]
    assert event.detail["permissions"] == {"old": old, "new": ["see_judge"]}
    assert event.actor == root
    assert client.post(f"/admin/auth/group/{author.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_password_that_is_removed_is_logged() -> None:
    user = make_user("mara", Role.RATER)
    user.set_unusable_password()
    user.save()
    assert AuditEvent.objects.get(verb="password removed").object_id == user.pk
