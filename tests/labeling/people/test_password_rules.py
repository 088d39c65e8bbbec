"""What a password may be, the fields that take it, and the session that it opens."""

import re

import pytest
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client

from labeling.models.people import User
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db
ODD = " p\u00e4ss w\u00f6rd \U0001f511 <b>' "


def refused(password: str, user: User | None = None) -> bool:
    try:
        validate_password(password, user)
    except ValidationError:
        return True
    return False


def sign_in(name: str, password: str, client: Client | None = None) -> Client:
    client = client or Client()
    client.post("/accounts/login/", {"login": name, "password": password})
    return client


def test_a_password_has_8_characters_or_many() -> None:
    assert refused("kqzwvjx") and not refused("kqzwvjxp")
    assert not refused("correct horse " * 20)


@pytest.mark.parametrize("password", ["password", "iloveyou", "qwerty123", "12345678"])
def test_a_frequent_password_is_refused(password: str) -> None:
    assert refused(password)


def test_words_of_the_workbench_and_of_the_person_are_no_password() -> None:
    user = User(username="zuckermann", first_name="Zoe", email="zoe.zuckermann@shop.example")
    for password in ("Workbench-2026!", "laceworkbench", "raters2026!!", "zuckermann1"):
        assert refused(password, user), password


@pytest.mark.parametrize("password", ["830174625193", "aaaabbbbccccdddd", ODD, "NURGROSSBUCHSTABEN"])
def test_any_characters_count_as_they_are_typed(password: str) -> None:
    assert not refused(password)
    user = make_user("nora")
    user.set_password(password)
    user.save()
    assert sign_in("nora", password).session.get("_auth_user_id") == str(user.pk)
    for other in {password.strip(), password.lower(), password[:-1]} - {password}:
        assert "_auth_user_id" not in sign_in("nora", other).session, other


def test_fields_are_masked_and_open_to_password_managers(client: Client, rater_user: User) -> None:
    pages = [client.get("/accounts/login/")]
    client.force_login(rater_user)
    pages.append(client.get("/accounts/password/"))
    fields = [
        field
        for page in pages
        for field in re.findall(r"<input[^>]*>", page.content.decode())
        if re.search(r'name="(old)?password', field)
    ]
    assert len(fields) == 4
    for field in fields:
        assert 'type="password"' in field and 'autocomplete="off"' not in field, field
        assert "onpaste" not in field and "maxlength" not in field, field


def test_no_setting_makes_a_password_expire(rater_user: User) -> None:
    assert not [name for name in dir(settings) if "PASSWORD" in name and "AGE" in name.split("_")]
    assert not hasattr(rater_user, "password_changed_at")


def test_a_sign_in_begins_a_new_session_with_a_random_key(rater_user: User, client: Client) -> None:
    client.get("/accounts/login/")
    session = client.session
    session["before"] = "x"
    session.save()
    before = session.session_key
    sign_in("mara", "correct horse battery", client)
    keys = {before, client.session.session_key, sign_in("mara", "correct horse battery").session.session_key}
    assert len(keys) == 3
    assert all(key and len(key) == 32 and key.isalnum() for key in keys)  # of 36 letters: 165 bits


def test_a_session_that_signed_out_opens_nothing(rater_user: User) -> None:
    client = sign_in("mara", "correct horse battery")
    stolen = dict(client.cookies)
    assert client.get("/queue/").status_code == 200
    client.post("/accounts/logout/")
    thief = Client()
    for name, cookie in stolen.items():
        thief.cookies[name] = cookie.value
    assert thief.get("/queue/").status_code == 302
