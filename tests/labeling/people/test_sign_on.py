"""Single sign-on: whom the provider's answer signs in, with which role, and what is refused."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.conf import settings as project
from django.test import Client
from pytest_django import Settings

from labeling.models.people import AuditEvent, Role, User
from labeling.people.services.invitations import invitation_create
from labeling.people.services.sign_on import guarded_client
from tests.factories.pages import page_text
from tests.factories.rows import make_user
from tests.factories.sign_on import OwnProvider, new_key, own_provider, use_provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(settings: Settings) -> Iterator[OwnProvider]:
    make_user("root", Role.LEAD)
    with own_provider() as one:
        use_provider(settings, one)
        yield one


def sign_on(client: Client, query: str = "") -> Any:
    """Go to the provider, as the page of the workbench says, and come back."""
    page = client.post(f"/accounts/sso/{query}")
    found = re.search(r'content="0;url=([^"]+)"', page.content.decode())
    assert found is not None, page.content.decode()
    there = requests.get(found[1].replace("&amp;", "&"), allow_redirects=False, timeout=10)
    back = urlsplit(there.headers["Location"])
    return client.get(back.path, {name: values[0] for name, values in parse_qs(back.query).items()})


def person() -> User:
    return User.objects.exclude(username="root").get()


def roles(user: User) -> list[str]:
    return sorted(user.groups.values_list("name", flat=True))


# ---------- who gets in, and as what ----------


def test_a_stranger_of_the_provider_gets_an_account_without_a_role(
    client: Client, provider: OwnProvider
) -> None:
    assert sign_on(client).headers["Location"] == "/"
    user = person()
    assert (user.username, user.get_full_name(), user.email) == ("mara", "Mara M.", "mara@example.org")
    assert roles(user) == []
    assert "ask a lead" in page_text(client.get("/")).lower()
    verbs = list(AuditEvent.objects.filter(actor=user).values_list("verb", flat=True))
    assert [verbs.count(verb) for verb in ("account created", "sign-on connected")] == [1, 1]


def test_the_setting_gives_newcomers_a_role_but_never_again(
    client: Client, provider: OwnProvider, settings: Settings
) -> None:
    settings.LACE_SSO_ROLE = "rater"
    sign_on(client)
    assert roles(person()) == ["rater"]
    person().groups.clear()
    assert sign_on(Client()).status_code == 302
    assert roles(person()) == []  # what a lead took away stays away


def test_an_invitation_to_the_address_gives_its_role_and_is_used_up(
    client: Client, provider: OwnProvider, settings: Settings
) -> None:
    settings.LACE_SSO_ROLE = "invited"
    assert "Nobody has invited mara@example.org" in page_text(sign_on(client))
    lead = User.objects.get(username="root")
    invitation = invitation_create(by=lead, role="author", email="Mara@example.org").invitation
    sign_on(client)
    assert roles(person()) == ["author"]
    invitation.refresh_from_db()
    assert invitation.used_by == person()


def test_an_account_that_a_lead_made_for_the_address_is_taken_over(
    client: Client, provider: OwnProvider
) -> None:
    user = make_user("mm", Role.LEAD)
    user.email = "mara@example.org"
    user.set_unusable_password()
    user.save()
    assert sign_on(client).status_code == 302
    assert (person(), roles(person())) == (user, ["lead"])


def test_an_account_with_a_password_is_connected_by_its_owner_alone(
    client: Client, provider: OwnProvider
) -> None:
    user = make_user("mm", Role.LEAD)
    User.objects.filter(pk=user.pk).update(email="mara@example.org")
    assert "There is an account with mara@example.org already" in page_text(sign_on(client))
    assert client.get("/people/").status_code == 302
    client.post("/accounts/login/", {"login": "mm", "password": "correct horse battery"})
    again = sign_on(client, "?process=connect")
    assert again.headers["Location"].startswith("/accounts/again/")
    done = client.post(again.headers["Location"], {"password": "correct horse battery"})
    assert done.headers["Location"] == "/accounts/"
    assert "mara@example.org" in page_text(client.get("/accounts/"))
    other = Client()
    assert sign_on(other).status_code == 302
    assert other.get("/people/").status_code == 200


def test_a_deactivated_account_stays_out(client: Client, provider: OwnProvider) -> None:
    sign_on(client)
    User.objects.filter(pk=person().pk).update(is_active=False)
    assert sign_on(Client()).headers["Location"] == "/accounts/inactive/"


# ---------- what is refused ----------


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        pytest.param({"email_verified": False}, "no e-mail address that it has verified", id="not verified"),
        pytest.param({"email": "x@evil.example"}, "Accounts of evil.example may not", id="other domain"),
        pytest.param({"email": "x@example.org.evil.example"}, "may not sign in", id="domain at the end only"),
        pytest.param({"aud": "another program"}, "did not confirm", id="for another program"),
        pytest.param({"iss": "https://evil.example"}, "did not confirm", id="of another issuer"),
        pytest.param({"exp": 1}, "did not confirm", id="expired"),
    ],
)
def test_such_a_person_or_token_signs_nobody_in(
    client: Client, provider: OwnProvider, settings: Settings, claims: dict[str, Any], says: str
) -> None:
    settings.LACE_SSO_DOMAINS = ["example.org"]
    provider.claims |= claims
    answer = sign_on(client)
    assert (answer.status_code, says in page_text(answer)) == (403, True)
    assert User.objects.count() == 1 and "_auth_user_id" not in client.session


def test_a_token_that_another_key_signed_is_refused(client: Client, provider: OwnProvider) -> None:
    provider.signs_with = new_key()
    assert sign_on(client).status_code == 403


def test_an_answer_without_the_state_of_this_browser_is_refused(
    client: Client, provider: OwnProvider
) -> None:
    client.post("/accounts/sso/")
    answer = client.get("/accounts/sso/callback/", {"code": "code-0", "state": "other"})
    assert answer.status_code == 403


def test_user_info_adds_an_address_but_only_of_the_same_person(client: Client, provider: OwnProvider) -> None:
    del provider.claims["email"]
    provider.user_info = {"sub": "p-2", "email": "mara@example.org", "email_verified": True}
    assert sign_on(client).status_code == 403
    provider.user_info["sub"] = "p-1"
    assert sign_on(client).status_code == 302


@pytest.mark.parametrize(
    "names",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://169.254.169.254/latest"},
        {"jwks_uri": "http://10.0.0.4/keys"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_provider_that_names_other_places_is_not_followed(
    client: Client, provider: OwnProvider, names: dict[str, str]
) -> None:
    provider.names = names
    assert client.post("/accounts/sso/").status_code == 403
    assert "/token" not in provider.asked


@pytest.mark.parametrize("address", ["https://169.254.169.254/", "https://10.0.0.4/", "http://example.org/"])
def test_the_client_dials_neither_private_networks_nor_without_tls(address: str) -> None:
    with pytest.raises(requests.RequestException):
        guarded_client().get(address)


def test_a_server_for_others_does_not_dial_this_machine(provider: OwnProvider, settings: Settings) -> None:
    settings.LACE_LOOPBACK_ONLY = False
    with pytest.raises(requests.RequestException):
        guarded_client().get(provider.issuer)
    assert provider.asked == []


def test_without_a_provider_there_is_no_such_page(client: Client) -> None:
    make_user("root")
    assert project.LACE_SSO_ISSUER == ""
    assert (
        client.post("/accounts/sso/").status_code == client.get("/accounts/sso/callback/").status_code == 404
    )
    assert "Sign in with" not in page_text(client.get("/accounts/login/")).replace("with a passkey", "")
