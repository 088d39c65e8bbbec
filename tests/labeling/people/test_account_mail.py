"""E-mails about accounts, sent by a worker over real SMTP: invitations, links for a password, notices."""

import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from labeling.models.people import AccountMail, AuditEvent, Invitation, Role, User
from labeling.people.services.mail_sending import PAUSES, mails_sweep
from labeling.people.services.second_factor import second_factor_reset
from tests.cases import NEW_PASSWORD
from tests.factories.mail import OwnMailServer, mail_server_down, own_mail_server
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

NORA = {"role": "rater", "name": "Nora", "email": "nora@example.org"}
JOIN = re.compile(r"https://lace\.example\.org(/join/\S+)")


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


def sent(server: OwnMailServer) -> list[Any]:
    """Let the worker send what is due; all e-mails that came in so far."""
    mails_sweep()
    return server.mails


def path_in(mail: Any) -> str:
    found = JOIN.search(mail.get_content())
    assert found is not None, mail.get_content()
    return found[1]


# ---------- invitations ----------


def test_the_invitation_is_sent_and_says_so_and_its_link_works(lead: Client, server: OwnMailServer) -> None:
    answer = lead.post("/people/", NORA, follow=True)
    assert "An e-mail to nora@example.org is on its way." in words(answer)
    assert "/join/" not in answer.content.decode()
    assert server.mails == []  # the page waits for no mail server
    assert "E-mail on its way" in words(lead.get("/people/"))
    (mail,) = sent(server)
    assert (mail["To"], mail["Subject"]) == ("nora@example.org", "LACE workbench: invitation")
    assert mail.get_content_type() == "text/plain"
    assert "ines invites you to the LACE workbench as rater." in mail.get_content()
    assert "Nora" in words(Client().get(path_in(mail)))
    assert re.search(r"sent \d", words(lead.get("/people/")))
    assert not AccountMail.objects.exists()
    assert AuditEvent.objects.filter(object_type="labeling.invitation").count() == 1


def test_links_in_mails_lead_to_the_set_address_whatever_host_was_asked(
    lead: Client, server: OwnMailServer, settings: Settings, mara: User
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    lead.post("/people/", NORA, headers={"Host": "evil.example"})
    Client().post("/accounts/password/reset/", {"email": mara.email}, headers={"Host": "evil.example"})
    assert [mail["To"] for mail in sent(server)] == ["nora@example.org", "mara@example.org"]
    for mail in server.mails:
        assert "https://lace.example.org/" in mail.get_content()
        assert "evil" not in mail.as_string()


def test_sent_again_it_has_a_new_link_and_the_first_one_ends(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    sent(server)
    invitation = Invitation.objects.get()
    assert "Send again" in words(lead.get("/people/"))
    lead.post(reverse("labeling:invite_renew", args=[invitation.pk]))
    first, second = (path_in(mail) for mail in sent(server))
    assert Client().get(first).status_code == 404
    assert Client().get(second).status_code == 200
    verbs = AuditEvent.objects.filter(object_type="labeling.invitation").values_list("verb", flat=True)
    assert sorted(verbs) == ["invitation created", "invitation renewed"]


def test_a_lead_may_have_a_link_for_copying_instead(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    renew = reverse("labeling:invite_renew", args=[Invitation.objects.get().pk])
    link = lead.post(renew, {"link": "1"}).context["link"]
    assert sent(server) == []  # the e-mail would have ended the link
    assert Client().get(link.removeprefix("https://lace.example.org")).status_code == 200


# ---------- the mail server ----------


def later(minutes: float = 1) -> None:
    """Let the pause of what waits be over."""
    AccountMail.objects.filter(state="waiting").update(next_at=timezone.now() - timedelta(minutes=minutes))


def test_what_a_server_that_is_down_does_not_take_is_tried_again(
    lead: Client, server: OwnMailServer, settings: Settings
) -> None:
    port = settings.EMAIL_PORT
    mail_server_down(settings)
    lead.post("/people/", NORA)
    sent(server)
    assert "not sent yet. The mail server could not be reached." in words(lead.get("/people/"))
    settings.EMAIL_PORT = port
    assert sent(server) == []  # the pause is not over
    later()
    assert Client().get(path_in(sent(server)[0])).status_code == 200


def test_a_server_that_is_down_is_asked_once_for_all_that_waits(
    lead: Client, server: OwnMailServer, settings: Settings, mara: User
) -> None:
    mail_server_down(settings)
    lead.post("/people/", NORA)
    Client().post("/accounts/password/reset/", {"email": mara.email})
    mails_sweep()
    assert sorted(AccountMail.objects.values_list("attempts", flat=True)) == [0, 1]
    assert not AccountMail.objects.filter(next_at__lte=timezone.now()).exists()


def test_after_the_last_try_it_is_given_up(lead: Client, server: OwnMailServer, settings: Settings) -> None:
    mail_server_down(settings)
    lead.post("/people/", NORA)
    for _ in range(len(PAUSES) + 1):
        mails_sweep()
        later()
    (mail,) = AccountMail.objects.all()
    assert (mail.state, mail.attempts) == ("failed", len(PAUSES) + 1)
    assert "E-mail not sent. The mail server could not be reached." in words(lead.get("/people/"))
    status = " ".join(re.sub("<[^>]+>", " ", words(lead.get("/status/"))).split())
    assert "Waiting 0 Not sent in 30 days 1 Last error The mail server could not be reached." in status


def test_an_address_that_the_server_refuses_is_not_tried_again(lead: Client, server: OwnMailServer) -> None:
    server.refuses = True
    lead.post("/people/", NORA)
    assert sent(server) == []
    assert "E-mail not sent. The mail server refused the address (550)." in words(lead.get("/people/"))
    AccountMail.objects.update(created_at=timezone.now() - timedelta(days=31))
    mails_sweep()
    assert not AccountMail.objects.exists()


def test_two_workers_send_one_e_mail_once(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    sending = "labeling.people.services.mail_sending._send"
    with patch(sending, side_effect=lambda *_: mails_sweep()) as asked:  # the other one comes meanwhile
        mails_sweep()
    assert asked.call_count == 1


def test_no_table_has_the_secret_of_a_link_that_waits(
    lead: Client, server: OwnMailServer, mara: User
) -> None:
    lead.post("/people/", NORA)
    Client().post("/accounts/password/reset/", {"email": mara.email})
    assert set(AccountMail.objects.values_list("text", flat=True)) == {""}
    secret = path_in(sent(server)[0]).rstrip("/").rpartition("/")[2]
    assert secret not in str(list(Invitation.objects.values()))


def test_without_an_address_or_a_server_the_link_is_for_copying(
    lead: Client, server: OwnMailServer, settings: Settings
) -> None:
    assert "link" in lead.post("/people/", NORA | {"email": ""}).context
    settings.INBOX_MAIL = False
    assert "link" in lead.post("/people/", NORA).context
    assert sent(server) == []
    assert "New link" in words(lead.get("/people/"))


def test_an_ended_invitation_is_not_sent_again(lead: Client, server: OwnMailServer) -> None:
    lead.post("/people/", NORA)
    pk = Invitation.objects.get().pk
    lead.post(reverse("labeling:invite_revoke", args=[pk]))
    answer = lead.post(reverse("labeling:invite_renew", args=[pk]), follow=True)
    assert "used, revoked or has expired" in words(answer)
    assert sent(server) == []  # nor is one that ended before the worker came


# ---------- links for a password ----------


def test_a_link_by_mail_sets_a_password_and_signs_in(server: OwnMailServer, mara: User) -> None:
    browser = Client()
    browser.post("/accounts/password/reset/", {"email": "mara@example.org"})
    found = re.search(r"https://lace\.example\.org(/\S+)", sent(server)[0].get_content())
    assert found is not None
    form = browser.get(found[1], follow=True)
    both = dict.fromkeys(("password1", "password2"), "a long new password")
    assert "You are signed in" in words(browser.post(form.context["action_url"], both, follow=True))


def test_the_page_does_the_same_work_whether_or_not_somebody_has_the_address(
    server: OwnMailServer, mara: User
) -> None:
    pages, asked = [], []
    for email in ("mara@example.org", "nobody@example.org"):
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            pages.append(words(Client().post("/accounts/password/reset/", {"email": email}, follow=True)))
        asked.append([re.sub(r"'[^']*'|\d+(\.\d+)?", "?", one["sql"]) for one in captured])
    assert pages[0] == pages[1]
    assert asked[0] == asked[1]
    assert not any("labeling_user" in statement for statement in asked[0])
    assert [mail["To"] for mail in sent(server)] == ["mara@example.org"]
    assert not AccountMail.objects.exists()


# ---------- notices ----------


def notices(server: OwnMailServer) -> list[str]:
    return [mail.get_content().splitlines()[0].partition(" (")[0] for mail in sent(server)]


def test_a_new_password_is_told_with_address_and_browser(server: OwnMailServer, mara: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT="Mozilla/5.0 (X11; Linux) Firefox/145.0")
    client.force_login(mara)
    client.post("/accounts/password/", NEW_PASSWORD)
    assert notices(server) == ["Your password was changed."]
    text = server.mails[0].get_content()
    assert "From: 192.0.2.7, Firefox on Linux" in text and "https://lace.example.org/" in text


def test_so_is_one_that_the_operator_sets(server: OwnMailServer, mara: User) -> None:
    with patch("getpass.getpass", return_value="a long new password"):
        call_command("changepassword", "mara", stdout=StringIO())
    assert notices(server) == ["Your password was changed."]
    assert "command line" in server.mails[0].get_content()
    assert AuditEvent.objects.filter(verb="password changed", actor=None).count() == 1


def test_changes_of_factors_and_new_codes_are_told(
    server: OwnMailServer, mara: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    client = Client()
    client.force_login(mara)
    client.post("/accounts/again/", {"password": "correct horse battery"})
    TOTP.activate(mara, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(mara)
    with django_capture_on_commit_callbacks(execute=True):  # allauth's own
        client.post("/accounts/recovery-codes/new/")
    client.post("/accounts/app/remove/")
    assert notices(server) == [
        "New recovery codes were made. The old ones no longer work.",
        "A second factor was removed: authenticator app.",
    ]
    logged = AuditEvent.objects.filter(verb__startswith="second-factor").order_by("pk")
    assert [(event.verb, event.detail["factor"]) for event in logged] == [
        ("second-factor renewed", "recovery codes"),
        ("second-factor removed", "authenticator app"),
        ("second-factor removed", "recovery codes"),
    ]


def test_a_lead_who_removes_it_is_told_of(server: OwnMailServer, lead_user: User, mara: User) -> None:
    TOTP.activate(mara, "JBSWY3DPEHPK3PXP")
    second_factor_reset(person=mara, by=lead_user)
    assert "A lead removed your second factor" in notices(server)[0]


def test_an_accounts_first_password_is_no_change(server: OwnMailServer) -> None:
    User.objects.create_user("zoe", email="zoe@example.org", password="a long first password")
    assert server.mails == []
    assert not AuditEvent.objects.filter(verb="password changed").exists()
