"""Sign-in by user name or e-mail with limits; reset by mail or by a lead's link; no sign-up."""

import re
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache, caches
from django.core.cache.backends.db import DatabaseCache
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import Settings

from common.models import CacheEntry
from labeling.models.people import Role, User
from labeling.people.services.devices import cookie_name
from labeling.people.services.mail_sending import mails_sweep
from labeling.people.services.sign_in import reset_path
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


@pytest.fixture
def mara() -> User:
    user = make_user("mara", Role.RATER)
    user.email = "mara@x.org"
    user.save()
    return user


def sign_in(client: Client, login: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post(reverse("account_login"), {"login": login, "password": password} | more)


@pytest.mark.parametrize("login", ["mara", "Mara", "mara@x.org"])
def test_user_name_and_email_both_sign_in(client: Client, mara: User, login: str) -> None:
    assert sign_in(client, login).headers["Location"] == reverse("home")
    assert client.get("/queue/").status_code == 200


def test_next_leads_on_but_never_to_another_site(mara: User) -> None:
    assert sign_in(Client(), "mara", next="/queue/?a=1").headers["Location"] == "/queue/?a=1"
    assert sign_in(Client(), "mara", next="https://evil.example/").headers["Location"] == reverse("home")


def test_after_five_wrong_passwords_the_right_one_waits_too(client: Client, mara: User) -> None:
    for _ in range(5):
        assert "is wrong" in page_text(sign_in(client, "mara", "wrong"))
    assert "Too many failed sign-ins" in page_text(sign_in(client, "mara"))
    make_user("nora", Role.RATER)
    assert sign_in(Client(), "nora").status_code == 302  # others are not held up


def test_wrong_passwords_from_elsewhere_lock_nobody_out(mara: User) -> None:
    stranger, own = Client(REMOTE_ADDR="198.51.100.7"), Client(REMOTE_ADDR="192.0.2.7")
    for _ in range(6):
        sign_in(stranger, "mara", "wrong")
    assert "Too many failed sign-ins" in page_text(sign_in(stranger, "mara"))
    assert sign_in(own, "mara").headers["Location"] == reverse("home")


def test_failed_sign_ins_count_over_all_processes() -> None:
    """In the database: memory would count in each web server process."""
    assert isinstance(caches["default"], DatabaseCache)
    cache.set("a", [1.5], 60)
    assert CacheEntry.objects.count() == 1
    assert cache.get("a") == [1.5]


def test_after_twenty_wrong_passwords_a_minute_unknown_browsers_at_the_address_wait(mara: User) -> None:
    for n in range(20):
        assert "is wrong" in page_text(sign_in(Client(), f"person-{n}", "wrong"))
    assert "Too many failed sign-ins" in page_text(sign_in(Client(), "mara"))
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), "mara").status_code == 302


def test_a_team_behind_one_address_signs_in_within_a_minute(mara: User) -> None:
    """Sign-ins that succeed count nowhere, and use up no room of those that fail."""
    assert {sign_in(Client(), "mara").status_code for _ in range(31)} == {302}
    for n in range(19):
        sign_in(Client(), f"person-{n}", "wrong")
    assert sign_in(Client(), "mara").status_code == 302


def test_a_deactivated_account_is_told_so_only_with_its_password(client: Client, mara: User) -> None:
    User.objects.update(is_active=False)
    assert "is wrong" in page_text(sign_in(client, "mara", "wrong"))
    assert sign_in(client, "mara").headers["Location"] == reverse("account_inactive")
    assert client.get("/queue/").status_code == 302


def test_there_is_no_sign_up(client: Client) -> None:
    with pytest.raises(NoReverseMatch):
        reverse("account_signup")
    assert client.get("/accounts/signup/").status_code in (302, 404)


def test_a_link_does_not_sign_out(client: Client, mara: User) -> None:
    client.force_login(mara)
    assert client.get(reverse("account_logout")).status_code == 405
    assert client.post(reverse("account_logout")).headers["Location"] == reverse("account_login")


def test_without_a_mail_server_the_page_says_whom_to_ask(client: Client, mara: User) -> None:
    page = page_text(client.get(reverse("account_reset_password")))
    assert "Ask a lead for a link" in page and "<form" not in page.split("<main")[1]
    client.post(reverse("account_reset_password"), {"email": "mara@x.org"})
    assert mail.outbox == []


def test_with_a_mail_server_the_link_comes_by_mail_and_strangers_learn_nothing(
    client: Client, mara: User, settings: Settings
) -> None:
    settings.INBOX_MAIL, settings.SITE_URL = True, "https://lace.example.org"
    answers = [
        client.post(reverse("account_reset_password"), {"email": email}, follow=True)
        for email in ("Mara@x.org", "nobody@x.org")
    ]
    assert page_text(answers[0]) == page_text(answers[1])
    mails_sweep()
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["mara@x.org"], "LACE workbench: set a new password")
    found = re.search(r"https://lace\.example\.org(/\S+)", str(sent.body))
    assert found is not None
    form = client.get(found[1], follow=True)
    assert "Set your password" in page_text(form)


def test_a_deactivated_account_sets_no_password_by_an_older_link(client: Client, mara: User) -> None:
    path = reset_path(mara)
    User.objects.update(is_active=False)
    assert client.get(path).status_code == 404


# ---------- nobody locks others out ----------


def test_a_browser_that_signed_in_before_is_not_held_up_by_others_at_its_address(mara: User) -> None:
    own, stranger = Client(REMOTE_ADDR="192.0.2.7"), Client(REMOTE_ADDR="192.0.2.7")
    sign_in(own, "mara")
    own.post(reverse("account_logout"))
    for _ in range(6):
        sign_in(stranger, "mara", "wrong")
    for n in range(20):  # the address is used up, too
        sign_in(stranger, f"person-{n}", "wrong")
    assert "Too many failed sign-ins" in page_text(sign_in(stranger, "mara"))
    assert sign_in(own, "mara").headers["Location"] == reverse("home")


def test_a_known_browser_has_its_own_limit_and_only_for_its_account(client: Client, mara: User) -> None:
    sign_in(client, "mara")
    client.post(reverse("account_logout"))
    for _ in range(5):
        sign_in(client, "mara", "wrong")
    assert "Too many failed sign-ins" in page_text(sign_in(client, "mara"))
    make_user("nora", Role.RATER)
    for _ in range(5):
        sign_in(client, "nora", "wrong")
    assert "Too many failed sign-ins" in page_text(sign_in(Client(), "nora"))


def test_the_cookie_of_a_known_browser_is_signed_and_signs_nobody_in(client: Client, mara: User) -> None:
    sign_in(client, "mara")
    cookie = client.cookies[cookie_name()]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"
    other = Client()
    other.cookies[cookie_name()] = cookie.value
    assert other.get("/queue/").status_code == 302
    other.cookies[cookie_name()] = f"{mara.pk}.forged"
    for _ in range(5):
        sign_in(other, "mara", "wrong")
    assert "Too many failed sign-ins" in page_text(sign_in(Client(), "mara"))
