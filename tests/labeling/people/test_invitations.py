"""An invitation makes one account in one role, once, within 7 days; only a digest of its link is stored."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models.people import AuditEvent, Invitation, Role, User
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

OWN = {"username": "nora", "name": "Nora L", "email": ""} | dict.fromkeys(
    ("password1", "password2"), "a long own password"
)


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def invite(lead: Client, **fields: str) -> str:
    """The link as the page shows it."""
    return str(lead.post("/people/", {"role": "rater"} | fields).context["link"])


def words(answer: Any) -> str:
    return " ".join(page_text(answer).split())


def test_the_link_is_shown_once_and_its_secret_is_not_stored(lead: Client) -> None:
    link = invite(lead, name="Nora")
    secret = link.split("/")[-2]
    page = page_text(lead.get("/people/"))
    assert "Nora" in page and secret not in page
    assert secret not in str(list(Invitation.objects.values())) + str(list(AuditEvent.objects.values()))


def test_an_invited_person_creates_an_account_in_that_role_and_is_signed_in(lead: Client) -> None:
    link, nora = invite(lead, role="author", name="Nora", email="Nora@x.org"), Client()
    page = words(nora.get(link))
    assert 'value="Nora"' in page and 'value="nora@x.org"' in page and "prompt author" in page
    assert nora.post(link, OWN).headers["Location"] == reverse("home")
    user = User.objects.get(username="nora")
    assert [group.name for group in user.groups.all()] == [Role.AUTHOR]
    assert nora.get("/criteria/").status_code == 200
    event = AuditEvent.objects.get(verb="invitation accepted")
    assert (event.actor, event.detail) == (user, {"role": "author"})


def ended_by_use(lead: Client, link: str) -> None:
    assert Client().post(link, OWN).status_code == 302


def ended_by_revoking(lead: Client, link: str) -> None:
    lead.post(reverse("labeling:invite_revoke", args=[Invitation.objects.get().pk]))


def ended_by_time(lead: Client, link: str) -> None:
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("end", [ended_by_use, ended_by_revoking, ended_by_time])
def test_a_link_that_ended_opens_nothing_and_says_what_to_do(lead: Client, end: Any) -> None:
    link = invite(lead)
    end(lead, link)
    for answer in (Client().get(link), Client().post(link, OWN | {"username": "second"})):
        assert answer.status_code == 404
        assert "This invitation no longer works" in page_text(answer)
    assert not User.objects.filter(username="second").exists()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"username": "Mara"}, "An account with this user name exists"),
        ({"password1": "short", "password2": "short"}, "This password is too short"),
        ({"password2": "another one entirely"}, "The two passwords differ."),
        ({"password1": "nora-nora-l", "password2": "nora-nora-l", "username": "nora-nora"}, "too similar"),
    ],
)
def test_what_is_wrong_is_said_and_the_invitation_stays(
    lead: Client, fields: dict[str, str], problem: str
) -> None:
    make_user("mara")
    link = invite(lead)
    assert problem in words(Client().post(link, OWN | fields))
    assert Client().post(link, OWN).status_code == 302


def test_a_signed_in_user_does_not_use_the_invitation_up(lead: Client) -> None:
    link = invite(lead)
    assert "You are signed in as" in words(lead.get(link))
    assert lead.post(link, OWN).status_code == 404
    assert Invitation.objects.get().used_at is None
