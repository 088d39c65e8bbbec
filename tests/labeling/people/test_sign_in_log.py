"""Sign-ins in the audit log: who, with what and from where; failures without a flood; how long they stay."""

from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from common.memory import memory
from labeling.models.people import AuditEvent, Role, User, Workspace
from labeling.people.services import sign_in_log
from labeling.people.services.audit import audit
from labeling.people.services.sign_in_log import sign_in_failed, sign_ins_forget
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"


@pytest.fixture
def mara() -> User:
    return make_user("mara", Role.RATER)


def browser(**more: Any) -> Client:
    return Client(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT=FIREFOX, **more)


def sign_in(client: Client, login: str, password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/accounts/login/", {"login": login, "password": password}, **more)


def entries(verb: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(verb=verb).order_by("pk"))


# ---------- what is listed ----------


def test_a_sign_in_and_a_sign_out_have_an_entry_each(mara: User) -> None:
    client = browser()
    sign_in(client, "mara")
    client.post("/accounts/logout/")
    (began,), (ended,) = entries("sign-in succeeded"), entries("sign-out done")
    assert (began.actor, began.address) == (mara, "192.0.2.7")
    assert began.detail == {"user": "mara", "ways": ["password"], "browser": "Firefox on Linux"}
    assert (ended.actor, ended.address) == (mara, "192.0.2.7")


def test_a_wrong_password_and_a_wrong_code_say_which_account(mara: User) -> None:
    TOTP.activate(mara, "JBSWY3DPEHPK3PXP")
    client = browser()
    sign_in(client, "mara", "wrong")
    sign_in(client, "mara")
    client.post("/accounts/code/", {"code": "000000"})
    failed = entries("sign-in failed")
    assert [event.detail["because"] for event in failed] == ["wrong password", "wrong code"]
    assert {(event.actor, event.object_id, event.detail["user"]) for event in failed} == {
        (None, mara.pk, "mara")
    }
    assert entries("sign-in succeeded") == []


def test_a_name_that_is_no_account_is_not_stored(lead_user: User) -> None:
    """Somebody may have typed the password there."""
    sign_in(browser(), "my secret password", "x")
    (event,) = entries("sign-in failed")
    assert event.object_type == "labeling.workspace"
    assert event.detail["account"] == "unknown"
    assert "secret" not in str(list(AuditEvent.objects.values()))
    lead = Client()
    lead.force_login(lead_user)
    assert "not signed in" in page_text(lead.get("/workspace/log/?kind=sign-ins"))
    assert not lead.get("/api/workspace/log/?person=-").json()["results"]  # nor the command line's


def test_a_lock_out_has_one_entry_an_hour(mara: User) -> None:
    client = browser()
    for _ in range(9):
        sign_in(client, "mara", "wrong")
    assert (len(entries("sign-in failed")), len(entries("sign-in blocked"))) == (5, 1)


def test_failures_of_an_hour_are_limited_by_address_account_and_altogether(
    mara: User, monkeypatch: pytest.MonkeyPatch, rf: Any
) -> None:
    def fail(times: int, login: str, address: str) -> int:
        before = len(entries("sign-in failed"))
        for _ in range(times):
            request = rf.post("/", REMOTE_ADDR=address)
            sign_in_failed(request=request, login=login, because="wrong password")
        return len(entries("sign-in failed")) - before

    assert fail(25, "mara", "192.0.2.1") == sign_in_log.FROM_ADDRESS == 20
    assert entries("sign-in failed")[-1].detail["note"] == sign_in_log.MORE
    assert fail(25, "mara", "192.0.2.2") == sign_in_log.FOR_ACCOUNT - 20
    monkeypatch.setattr(sign_in_log, "ALTOGETHER", 32)
    assert fail(5, "nora", "192.0.2.3") == 2


# ---------- from where ----------


@pytest.mark.parametrize(
    ("proxies", "forwarded", "counted"),
    [
        (0, "6.6.6.6", "192.0.2.7"),
        (1, "6.6.6.6, 198.51.100.1", "198.51.100.1"),
        (2, "6.6.6.6, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
        (2, "198.51.100.1", "198.51.100.1"),
        (1, "nonsense", "192.0.2.7"),
        (1, "[2001:db8::1]:4711", "2001:db8::1"),
    ],
)
def test_the_client_counts_and_not_the_proxy_or_what_the_client_claims(
    mara: User, settings: Settings, proxies: int, forwarded: str, counted: str
) -> None:
    settings.LACE_TRUSTED_PROXIES = proxies
    sign_in(browser(), "mara", headers={"X-Forwarded-For": forwarded})
    assert entries("sign-in succeeded")[0].address == counted


def test_a_claimed_address_escapes_no_limit_behind_a_proxy(mara: User, settings: Settings) -> None:
    settings.LACE_TRUSTED_PROXIES = 1
    for n in range(5):
        sign_in(browser(), "mara", "wrong", headers={"X-Forwarded-For": f"6.6.6.{n}, 198.51.100.1"})
    again = sign_in(browser(), "mara", headers={"X-Forwarded-For": "6.6.6.9, 198.51.100.1"})
    assert "Too many failed sign-ins" in page_text(again)
    other = sign_in(browser(), "mara", headers={"X-Forwarded-For": "6.6.6.9, 198.51.100.2"})
    assert other.status_code == 302


# ---------- how long they stay ----------


def entry(verb: str, *, days: int) -> AuditEvent:
    then: datetime = timezone.now() - timedelta(days=days)
    with patch("django.utils.timezone.now", return_value=then):
        return audit(actor=None, verb=verb, obj=Workspace.current())


def test_old_entries_of_sign_ins_go_and_all_others_stay(settings: Settings) -> None:
    settings.LACE_SIGN_IN_LOG_DAYS = 60
    memory.clear()
    entry("sign-in failed", days=61)
    entry("sign-out done", days=61)
    kept = {entry("sign-in failed", days=59).pk, entry("settings changed", days=900).pk}
    sign_ins_forget()
    assert set(AuditEvent.objects.values_list("pk", flat=True)) == kept


@pytest.mark.parametrize(("verb", "days"), [("sign-in failed", 29), ("settings changed", 900)])
def test_the_database_deletes_no_younger_ones_and_no_others(verb: str, days: int) -> None:
    row = entry(verb, days=days)
    for statement in (
        "DELETE FROM labeling_auditevent",
        "UPDATE labeling_auditevent SET verb = 'sign-out done'",
    ):
        with (
            pytest.raises(DatabaseError, match="append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert AuditEvent.objects.get() == row
    cache.clear()
