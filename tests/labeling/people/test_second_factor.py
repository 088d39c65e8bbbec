"""Second factors: codes of an app, recovery codes, who has to have one, and help for who has lost it."""

import re
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from labeling.models.people import AuditEvent, Role, User, Workspace
from labeling.people.services.sign_in import Accounts
from labeling.people.services.tokens import token_create
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PASSWORD = {"password": "correct horse battery"}


def code_of(secret: str) -> str:
    counter = next(iter(yield_hotp_counters_from_time()))
    return str(format_hotp_value(hotp_value(secret, counter)))


def sign_in(client: Client, name: str) -> Any:
    return client.post("/accounts/login/", {"login": name, **PASSWORD})


def set_up(user: User) -> str:
    """Give the account an authenticator app; its secret."""
    secret = "JBSWY3DPEHPK3PXP"
    TOTP.activate(user, secret)
    return secret


def require(whom: str) -> None:
    Workspace.current()
    Workspace.objects.update(second_factor=whom)


def test_an_app_is_set_up_with_its_first_code_and_gives_recovery_codes(
    client: Client, lead_user: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    sign_in(client, "ines")
    page = client.get("/accounts/app/", follow=True)
    assert "enter your password again" in page_text(page)
    page = client.post(page.redirect_chain[-1][0], PASSWORD, follow=True)
    found = re.search(r'value="([A-Z2-7]{16,})"', page.content.decode())
    assert found is not None
    assert "not right" in page_text(client.post("/accounts/app/", {"code": "000000"}))
    with django_capture_on_commit_callbacks(execute=True):
        done = client.post("/accounts/app/", {"code": code_of(found[1])}, follow=True)
    assert len(re.findall(r"<li>\d{8}</li>", done.content.decode())) == 10
    stored = Authenticator.objects.get(type="totp")
    assert found[1] not in str(stored.data)  # encrypted
    verbs = AuditEvent.objects.filter(verb="second-factor added").order_by("pk")
    assert [event.detail["factor"] for event in verbs] == ["authenticator app", "recovery codes"]


def test_the_password_alone_no_longer_signs_in(client: Client, lead_user: User) -> None:
    secret = set_up(lead_user)
    assert sign_in(client, "ines").headers["Location"] == "/accounts/code/"
    assert client.get("/people/").status_code == 302
    assert "not right" in page_text(client.post("/accounts/code/", {"code": "000000"}))
    code = code_of(secret)
    assert client.post("/accounts/code/", {"code": code}).headers["Location"] == "/"
    assert client.get("/people/").status_code == 200
    other = Client()
    sign_in(other, "ines")
    assert "not right" in page_text(other.post("/accounts/code/", {"code": code}))  # a code counts once


def test_five_wrong_codes_make_the_right_one_wait(client: Client, lead_user: User) -> None:
    secret = set_up(lead_user)
    sign_in(client, "ines")
    for _ in range(5):
        client.post("/accounts/code/", {"code": "000000"})
    assert "Too many" in page_text(client.post("/accounts/code/", {"code": code_of(secret)}))
    cache.clear()
    assert client.post("/accounts/code/", {"code": code_of(secret)}).status_code == 302


def test_a_recovery_code_signs_in_once_and_the_log_says_so(lead_user: User) -> None:
    set_up(lead_user)
    code = RecoveryCodes.activate(lead_user).get_unused_codes()[0]
    signed_in = []
    for _ in range(2):
        client = Client()
        sign_in(client, "ines")
        client.post("/accounts/code/", {"code": code})
        signed_in.append(client.get("/people/").status_code == 200)
    assert signed_in == [True, False]
    event = AuditEvent.objects.get(verb="second-factor recovered")
    assert (event.actor, event.detail["codes_left"]) == (lead_user, 9)


def test_a_superusers_admin_page_is_no_way_around(client: Client) -> None:
    set_up(User.objects.create_superuser("root", password=PASSWORD["password"]))
    answer = client.post("/admin/login/", {"username": "root", **PASSWORD})
    assert answer.headers["Location"].startswith("/accounts/login/")
    assert client.get("/admin/").status_code == 302


# ---------- the workspace requires one ----------


@pytest.mark.parametrize(
    ("whom", "held_up"), [("off", []), ("leads", ["ines"]), ("all", ["ines", "mara", "otto"])]
)
def test_whoever_has_to_have_one_sets_it_up_before_anything_else(
    lead_user: User, rater_user: User, author_user: User, whom: str, held_up: list[str]
) -> None:
    require(whom)
    found = []
    for user in (lead_user, rater_user, author_user):
        client = Client()
        client.force_login(user)
        page, part = client.get("/inbox/"), client.get("/inbox/counts/", headers={"HX-Request": "true"})
        api = client.get("/api/workspace/")
        if page.status_code == 302:
            assert (page.headers["Location"], part.status_code, api.status_code) == ("/accounts/", 204, 403)
            assert "Set up an authenticator app or a passkey" in page_text(client.get("/accounts/"))
            found.append(user.username)
    assert sorted(found) == held_up


def test_with_one_everything_is_open_and_the_last_one_stays(client: Client, lead_user: User) -> None:
    require("all")
    client.force_login(lead_user)
    set_up(lead_user)
    assert client.get("/people/").status_code == 200
    client.post("/accounts/again/", PASSWORD)
    answer = client.post("/accounts/app/remove/")
    assert "this is your only one" in page_text(answer)
    assert Authenticator.objects.filter(user=lead_user, type="totp").exists()


def test_tokens_of_programs_go_on(lead_user: User) -> None:
    require("all")
    secret = token_create(user=lead_user, name="nightly", scopes=["manage_labeling"], days=1).secret
    answer = Client().get("/api/workspace/", headers={"Authorization": f"Token {secret}"})
    assert answer.status_code == 200


def test_a_lead_requires_it_in_the_settings(client: Client, lead_user: User) -> None:
    client.force_login(lead_user)
    client.post("/workspace/", {"second_factor": "leads"})
    assert Workspace.current().second_factor == "leads"
    event = AuditEvent.objects.get(verb="settings changed")
    assert event.detail == {"second_factor": {"old": "off", "new": "leads"}}
    assert client.get("/workspace/").headers["Location"] == "/accounts/"


# ---------- who has lost it ----------


def test_a_lead_removes_it_and_the_log_says_so(client: Client, lead_user: User, rater_user: User) -> None:
    set_up(rater_user)
    client.force_login(lead_user)
    people = page_text(client.get("/people/"))
    assert "Authenticator app" in people
    answer = client.post(f"/people/{rater_user.pk}/second-factor/", follow=True)
    assert "signs in with the password alone now" in page_text(answer)
    event = AuditEvent.objects.get(verb="second-factor reset")
    assert (event.actor, event.detail["factors"]) == (lead_user, ["authenticator app"])
    assert sign_in(Client(), "mara").headers["Location"] == "/"
    again = client.post(f"/people/{rater_user.pk}/second-factor/", follow=True)
    assert "has no second factor" in page_text(again)


def test_nobody_removes_their_own_or_a_superusers_that_way(client: Client, lead_user: User) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(lead_user)
    for person in (lead_user, root):
        set_up(person)
        client.post(f"/people/{person.pk}/second-factor/")
    assert Authenticator.objects.count() == 2


def test_the_operator_helps_the_last_lead(lead_user: User) -> None:
    set_up(lead_user)
    call_command("reset_second_factor", "ines", stdout=StringIO())
    assert not Authenticator.objects.exists()
    assert AuditEvent.objects.get(verb="second-factor reset").actor is None


def test_people_without_one_are_marked_where_it_is_required(client: Client, lead_user: User) -> None:
    make_user("nora", Role.RATER)
    require("all")
    set_up(lead_user)
    client.force_login(lead_user)
    assert "Required, none" in page_text(client.get("/people/"))


def test_a_session_costs_a_second_query_only_where_second_factors_are_required(
    lead_user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    accounts: Any = Accounts()
    require("off")
    with django_assert_num_queries(1):
        assert not accounts.get_user(lead_user.pk).second_factor_due
    require("leads")
    with django_assert_num_queries(2):
        assert accounts.get_user(lead_user.pk).second_factor_due
    set_up(lead_user)
    assert not accounts.get_user(lead_user.pk).second_factor_due
    lead_user.is_active = False
    lead_user.save()
    assert accounts.get_user(lead_user.pk) is None
