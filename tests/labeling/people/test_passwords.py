"""A new password, wherever it is set, revokes API tokens; the user is told and the log says who."""

from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from labeling.models.people import ApiToken, AuditEvent, Role, User
from labeling.people.services.tokens import token_create
from tests.cases import NEW_PASSWORD
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

OLD, NEW = NEW_PASSWORD["oldpassword"], NEW_PASSWORD["password1"]


@pytest.fixture
def secret(author_user: User) -> str:
    return token_create(user=author_user, name="nightly", scopes=["see_judge"], days=30).secret


def status(secret: str) -> int:
    return Client().get("/api/criteria/", headers={"Authorization": f"Token {secret}"}).status_code


def test_a_new_password_revokes_tokens_and_ends_other_sessions(
    client: Client, author_user: User, secret: str
) -> None:
    other = Client()
    for browser in (client, other):
        browser.force_login(author_user)
    assert status(secret) == 200
    answer = client.post("/accounts/password/", NEW_PASSWORD, follow=True)
    text = page_text(answer)
    assert "Password changed. Your other sessions ended. Token nightly is revoked" in text
    assert "Revoked: the password changed" in page_text(client.get("/tokens/"))
    assert status(secret) == 401
    assert other.get("/tokens/").status_code == 302
    event = AuditEvent.objects.get(verb="token revoked")
    assert (event.actor, event.detail) == (author_user, {"name": "nightly", "reason": "the password changed"})


def test_a_wrong_old_password_changes_nothing(client: Client, author_user: User, secret: str) -> None:
    client.force_login(author_user)
    answer = client.post("/accounts/password/", {**NEW_PASSWORD, "oldpassword": "wrong"})
    assert answer.status_code == 200
    assert author_user.check_password(OLD)
    assert status(secret) == 200


@pytest.mark.parametrize("usable", ["true", "false"])
def test_a_superusers_reset_revokes_them_in_the_superusers_name(
    client: Client, author_user: User, secret: str, usable: str
) -> None:
    root = User.objects.create_superuser("root", password="the root of it all")
    client.force_login(root)
    body = {"password1": NEW, "password2": NEW, "usable_password": usable}
    if usable == "false":
        body["unset-password"] = "1"
    answer = client.post(f"/admin/labeling/user/{author_user.pk}/password/", body)
    assert answer.status_code == 302
    assert status(secret) == 401
    assert AuditEvent.objects.get(verb="token revoked").actor == root


def test_the_command_revokes_them(author_user: User, secret: str) -> None:
    with patch("getpass.getpass", return_value=NEW):
        call_command("changepassword", author_user.username, stdout=StringIO())
    assert status(secret) == 401
    assert AuditEvent.objects.get(verb="token revoked").actor is None


def test_a_sign_in_that_renews_the_hash_keeps_tokens(
    author_user: User, secret: str, settings: Settings
) -> None:
    newer = "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher"
    settings.PASSWORD_HASHERS = [newer, *settings.PASSWORD_HASHERS]
    assert author_user.check_password(OLD)
    assert User.objects.get(pk=author_user.pk).password.startswith("pbkdf2_sha1")
    assert status(secret) == 200


def test_a_password_whose_tokens_cannot_be_revoked_stays_the_old_one(
    author_user: User, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(**_: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("labeling.people.services.accounts.tokens_revoke", locked)
    author_user.set_password(NEW)
    with pytest.raises(OperationalError):
        author_user.save()
    assert not User.objects.get(pk=author_user.pk).check_password(NEW)
    assert status(secret) == 200


@pytest.mark.django_db(transaction=True)
def test_a_token_reads_also_where_its_use_cannot_be_noted(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection.execute_wrapper(refuse_updates):
        assert status(secret) == 200
    assert ApiToken.objects.get().last_used_at is None


def refuse_updates(execute: Any, sql: str, *rest: Any) -> Any:
    if sql.startswith('UPDATE "labeling_apitoken"'):
        raise OperationalError("attempt to write a readonly database")
    return execute(sql, *rest)


def test_other_peoples_tokens_stay(secret: str) -> None:
    other = make_user("olga", Role.AUTHOR)
    other.set_password(NEW)
    other.save()
    assert ApiToken.objects.get(name="nightly").revoked_at is None
