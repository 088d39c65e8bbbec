"""E-mails about accounts: invitations, links for a password, and notices; over real SMTP."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from labeling.models.people import AuditEvent, Invitation, Role, User
from labeling.people.services.second_factor import second_factor_reset
from tests.cases import NEW_PASSWORD
from tests.factories.mail import OwnMailServer, mail_server_down, own_mail_server
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

NORA = {"role": "rater", "name": "Nora", "email": "nora@example.org"}
JOIN = re.compile(r"https://lace\.example\.org(/join/\S+)")
Captured = DjangoCaptureOnCommitCallbacks


@pytest.fixture
def server(settings: Settings) -> Iterator[OwnMailServer]:
    with own_mail_server(settings) as one:
        yield one


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


@pytest.fixture
def mara() -> User:
    user = make_user("mara", Role.RATER)
    user.email = "mara@example.org"
    user.save()
    return user


def words(answer: Any) -> str:
    return " ".join(page_text(answer).split())


def path_in(mail: Any) -> str:
    found = JOIN.search(mail.get_content())
    assert found is not None, mail.get_content()
    return found[1]


# ---------- invitations ----------


def test_the_invitation_is_sent_and_says_so_and_its_link_works(lead: Client, server: OwnMailServer) -> None:
    answer = lead.post("/people/", NORA, follow=True)
    assert "Invitation sent to nora@example.org." in words(answer)
    assert "/join/" not in answer.content.decode()
    (mail,) = server.mails
    assert (mail["To"], mail["Subject"]) == ("nora@example.org", "LACE workbench: invitation")
    assert mail.get_content_type() == "text/plain"
    assert "ines invites you to the LACE workbench as rater." in mail.get_content()
    assert "Nora" in words(Client().get(path_in(mail)))
    assert re.search(r"sent \d", words(lead.get("/people/")))
    assert AuditEvent.objects.filter(object_type="labeling.invitation").count() == 1


def test_links_in_mails_lead_to_the_set_address_whatever_host_was_asked(
    lead: Client, server: OwnMailServer, settings: Settings, mara: User
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    lead.post("/people/", NORA, headers={"Host": "evil.example"})
    Client().post("/accounts/password/reset/", {"email": mara.email}, headers={"Host": "evil.example"})
    assert [mail["To"] for mail in server.mails] == ["nora@example.org", "mara@example.org"]
    for mail in server.mails:
        assert "https://lace.example.org/" in mail.get_content()
        assert "evil" not in mail.as_string()


def test_sent_again_it_has_a_new_link_and_the_first_one_ends(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    invitation = Invitation.objects.get()
    assert "Send again" in words(lead.get("/people/"))
    lead.post(reverse("labeling:invite_renew", args=[invitation.pk]))
    first, second = (path_in(mail) for mail in server.mails)
    assert Client().get(first).status_code == 404
    assert Client().get(second).status_code == 200
    verbs = AuditEvent.objects.filter(object_type="labeling.invitation").values_list("verb", flat=True)
    assert sorted(verbs) == ["invitation created", "invitation renewed"]


@pytest.mark.parametrize("trouble", ["down", "refused"])
def test_what_the_server_does_not_take_is_said_and_the_link_is_shown(
    lead: Client, server: OwnMailServer, settings: Settings, trouble: str
) -> None:
    server.refuses = trouble == "refused"
    if trouble == "down":
        mail_server_down(settings)
    answer = lead.post("/people/", NORA)
    assert "The e-mail to nora@example.org was not sent" in words(answer)
    link = answer.context["link"]
    assert Client().get(link.removeprefix("https://lace.example.org")).status_code == 200
    assert Invitation.objects.get().mailed_at is None


def test_without_an_address_or_a_server_the_link_is_for_copying(
    lead: Client, server: OwnMailServer, settings: Settings
) -> None:
    assert "link" in lead.post("/people/", NORA | {"email": ""}).context
    settings.INBOX_MAIL = False
    assert "link" in lead.post("/people/", NORA).context
    assert server.mails == []
    assert "New link" in words(lead.get("/people/"))


def test_an_ended_invitation_is_not_sent_again(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    pk = Invitation.objects.get().pk
    lead.post(reverse("labeling:invite_revoke", args=[pk]))
    answer = lead.post(reverse("labeling:invite_renew", args=[pk]), follow=True)
    assert "used, revoked or has expired" in words(answer)
    assert len(server.mails) == 1


# ---------- links for a password ----------


def test_a_link_by_mail_sets_a_password_and_signs_in(server: OwnMailServer, mara: User) -> None:
    browser = Client()
    browser.post("/accounts/password/reset/", {"email": "mara@example.org"})
    found = re.search(r"https://lace\.example\.org(/\S+)", server.mails[0].get_content())
    assert found is not None
    form = browser.get(found[1], follow=True)
    both = dict.fromkeys(("password1", "password2"), "a long new password")
    assert "You are signed in" in words(browser.post(form.context["action_url"], both, follow=True))


def test_a_mail_server_that_is_down_does_not_tell_who_has_an_account(
    server: OwnMailServer, settings: Settings, mara: User
) -> None:
    mail_server_down(settings)
    pages = [
        words(Client().post("/accounts/password/reset/", {"email": email}, follow=True))
        for email in ("mara@example.org", "nobody@example.org")
    ]
    assert pages[0] == pages[1]


# ---------- notices ----------


def notices(server: OwnMailServer) -> list[str]:
    return [mail.get_content().splitlines()[0].partition(" (")[0] for mail in server.mails]


def test_a_new_password_is_told_with_address_and_browser(
    server: OwnMailServer, mara: User, django_capture_on_commit_callbacks: Captured
) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT="Mozilla/5.0 (X11; Linux) Firefox/145.0")
    client.force_login(mara)
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/password/", NEW_PASSWORD)
    assert notices(server) == ["Your password was changed."]
    text = server.mails[0].get_content()
    assert "From: 192.0.2.7, Firefox on Linux" in text and "https://lace.example.org/" in text


def test_so_is_one_that_the_operator_sets(
    server: OwnMailServer, mara: User, django_capture_on_commit_callbacks: Captured
) -> None:
    with (
        django_capture_on_commit_callbacks(execute=True),
        patch("getpass.getpass", return_value="a long new password"),
    ):
        call_command("changepassword", "mara", stdout=StringIO())
    assert notices(server) == ["Your password was changed."]
    assert "command line" in server.mails[0].get_content()
    assert AuditEvent.objects.filter(verb="password changed", actor=None).count() == 1


def test_changes_of_factors_and_new_codes_are_told(
    server: OwnMailServer, mara: User, django_capture_on_commit_callbacks: Captured
) -> None:
    client = Client()
    client.force_login(mara)
    client.post("/accounts/again/", {"password": "correct horse battery"})
    TOTP.activate(mara, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(mara)
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/recovery-codes/new/")
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/accounts/app/remove/")
    assert notices(server) == [
        "New recovery codes were made. The old ones no longer work.",
        "A second factor was removed: authenticator app.",
    ]


def test_a_lead_who_removes_it_is_told_of(
    server: OwnMailServer, lead_user: User, mara: User, django_capture_on_commit_callbacks: Captured
) -> None:
    TOTP.activate(mara, "JBSWY3DPEHPK3PXP")
    with django_capture_on_commit_callbacks(execute=True):
        second_factor_reset(person=mara, by=lead_user)
    assert "A lead removed your second factor" in notices(server)[0]


def test_an_accounts_first_password_is_no_change(
    server: OwnMailServer, django_capture_on_commit_callbacks: Captured
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        User.objects.create_user("zoe", email="zoe@example.org", password="a long first password")
    assert server.mails == []
    assert not AuditEvent.objects.filter(verb="password changed").exists()
