"""Passkeys that are refused: in the log with account and reason, and counted so that nobody else waits."""

from typing import Any

import pytest
from django.test import Client

from labeling.models.people import AuditEvent, Role, User
from labeling.people.services import passkeys
from tests.factories.pages import page_text
from tests.factories.passkeys import SECOND_STEP, SIGN_IN, Passkey, challenge_of, passkey_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
WRONG = {"signature": "AAAA"}
TOO_MANY = "Too many failed sign-ins"


@pytest.fixture
def mara() -> User:
    return make_user("mara", Role.RATER)


@pytest.fixture
def passkey(mara: User) -> Passkey:
    return passkey_of(mara)


def browser(address: str = "192.0.2.7") -> Client:
    return Client(REMOTE_ADDR=address)


def use(client: Client, credential: str) -> Any:
    return client.post(SIGN_IN, {"credential": credential}, secure=True, follow=True)


def sign_in(client: Client, passkey: Passkey, **changed: Any) -> Any:
    return use(client, passkey.answer(challenge_of(client), **changed))


def is_signed_in(client: Client) -> bool:
    return client.get("/queue/", secure=True).status_code == 200


def entries(verb: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(verb=verb).order_by("pk"))


# ---------- the log ----------


def test_a_refused_passkey_is_logged_with_account_address_and_reason(passkey: Passkey) -> None:
    client = browser()
    assert "This code or passkey is not right" in page_text(sign_in(client, passkey, **WRONG))
    assert not is_signed_in(client)
    (event,) = entries("sign-in failed")
    assert (event.actor, event.object_id, event.address) == (None, passkey.user.pk, "192.0.2.7")
    assert (event.detail["user"], event.detail["because"]) == ("mara", "wrong passkey")
    sign_in(client, passkey)
    assert is_signed_in(client)
    assert entries("sign-in succeeded")[0].detail["ways"] == ["passkey"]


def test_a_challenge_that_is_used_again_is_refused(passkey: Passkey) -> None:
    client = browser()
    answer = passkey.answer(challenge_of(client))
    use(client, answer)
    client.post("/accounts/logout/", secure=True)
    use(client, answer)
    assert not is_signed_in(client)
    assert len(entries("sign-in failed")) == 1


@pytest.mark.parametrize("credential", ["[1]", '"x"', "1", '{"response": 1}', '{"id": "x", "rawId": "y"}'])
def test_nonsense_is_refused_and_logged_for_no_account(credential: str, mara: User) -> None:
    assert use(browser(), credential).status_code == 200
    (event,) = entries("sign-in failed")
    assert (event.detail["account"], event.detail["because"]) == ("unknown", "wrong passkey")


def test_a_refused_passkey_as_second_step_is_logged_and_a_lock_out_once(passkey: Passkey) -> None:
    client = browser()
    client.post("/accounts/login/", {"login": "mara", "password": PASSWORD}, secure=True)
    for _ in range(7):
        page = client.get(SECOND_STEP, secure=True)
        challenge = page.context["js_data"]["request_options"]["publicKey"]["challenge"]
        client.post(SECOND_STEP, {"credential": passkey.answer(challenge, **WRONG)}, secure=True)
    assert [event.detail["because"] for event in entries("sign-in failed")] == ["wrong passkey"] * 5
    (blocked,) = entries("sign-in blocked")
    assert blocked.detail["user"] == "mara"


# ---------- who waits ----------


def test_twenty_refused_passkeys_a_minute_hold_up_their_address_alone(passkey: Passkey) -> None:
    known, stranger = browser(), browser()
    sign_in(known, passkey)
    known.post("/accounts/logout/", secure=True)
    for _ in range(20):
        sign_in(stranger, passkey, **WRONG)
    assert TOO_MANY in page_text(sign_in(stranger, passkey))
    assert not is_signed_in(stranger)
    elsewhere, by_password = browser("198.51.100.1"), browser()
    sign_in(elsewhere, passkey)
    assert is_signed_in(elsewhere)
    sign_in(known, passkey)  # has signed in from there before
    assert is_signed_in(known)
    make_user("nora", Role.RATER)
    by_password.post("/accounts/login/", {"login": "nora", "password": PASSWORD}, secure=True)
    assert is_signed_in(by_password)


def test_passkeys_that_sign_in_count_nowhere(passkey: Passkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passkeys, "LIMIT", {"passkey_failed": "3/m/key"})
    for _ in range(4):
        sign_in(client := browser(), passkey)
    assert is_signed_in(client)
    for _ in range(2):
        sign_in(client := browser(), passkey, **WRONG)
    sign_in(client, passkey)
    assert is_signed_in(client)
