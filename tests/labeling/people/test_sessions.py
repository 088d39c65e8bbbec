"""Sessions: everybody sees where they are signed in, and signs browsers out; leads do so for all."""

import time

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from common.memory import memory
from labeling.models.people import AuditEvent, User
from labeling.people.queries.sessions import session_rows
from tests.cases import NEW_PASSWORD
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1 Version/18.5 Safari/604.1"


def signed_in(name: str, browser: str = FIREFOX) -> Client:
    client = Client(headers={"User-Agent": browser})
    client.post("/accounts/login/", {"login": name, "password": "correct horse battery"})
    return client


def test_the_account_page_lists_browsers_and_signs_one_out(rater_user: User) -> None:
    laptop, phone = signed_in("mara"), signed_in("mara", PHONE)
    text = page_text(laptop.get("/accounts/"))
    assert "Firefox on Linux" in text and "Safari on iPhone" in text and "this browser" in text
    other = session_rows(user=rater_user, current=laptop.session.session_key)[1]
    assert laptop.post(f"/accounts/sessions/{other.id}/end/").status_code == 302
    assert phone.get("/queue/").status_code == 302
    assert laptop.get("/queue/").status_code == 200
    assert AuditEvent.objects.filter(verb="sessions revoked", actor=rater_user).count() == 1


def test_all_others_end_at_once(rater_user: User) -> None:
    laptop, phone, tablet = (signed_in("mara") for _ in range(3))
    laptop.post("/accounts/sessions/end/")
    assert [one.get("/queue/").status_code for one in (laptop, phone, tablet)] == [200, 302, 302]
    assert AuditEvent.objects.get(verb="sessions revoked").detail == {"user": "mara", "sessions": 2}


def test_nobody_ends_a_session_of_somebody_else(rater_user: User) -> None:
    make_user("nora")
    mara, nora = signed_in("mara"), signed_in("nora")
    (own,) = session_rows(user=rater_user)
    assert nora.post(f"/accounts/sessions/{own.id}/end/").status_code == 404
    assert mara.get("/queue/").status_code == 200


def test_a_lead_signs_somebody_out_by_browser_or_everywhere(lead_user: User, rater_user: User) -> None:
    lead, laptop, phone = signed_in("ines"), signed_in("mara"), signed_in("mara", PHONE)
    page = f"/people/{rater_user.pk}/"
    assert "Safari on iPhone" in page_text(lead.get(page))
    one = next(row for row in session_rows(user=rater_user) if "iPhone" in row.browser)
    lead.post(f"{page}sessions/{one.id}/end/")
    assert [client.get("/queue/").status_code for client in (laptop, phone)] == [200, 302]
    lead.post(f"{page}sessions/end/")
    assert laptop.get("/queue/").status_code == 302
    assert lead.get(page).status_code == 200
    assert "Not signed in" in page_text(lead.get(page))


def test_a_session_that_has_ended_is_not_listed(rater_user: User) -> None:
    laptop, phone = signed_in("mara"), signed_in("mara", PHONE)
    phone.post("/accounts/logout/")
    assert len(session_rows(user=rater_user)) == 1
    signed_in("mara")
    laptop.post("/accounts/password/", NEW_PASSWORD)
    assert len(session_rows(user=rater_user)) == 1  # a new password ends the others
    Session.objects.all().delete()
    assert session_rows(user=rater_user) == []


def test_a_session_from_before_the_list_enters_it_when_it_is_used(rater_user: User) -> None:
    laptop = signed_in("mara")
    UserSession.objects.all().delete()
    laptop.get("/queue/")  # noted within the hour: this process has seen it
    memory.clear()
    laptop.get("/queue/")
    assert len(session_rows(user=rater_user)) == 1


# ---------- limits ----------


def test_a_session_ends_after_a_day_without_a_page(rater_user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop, now = signed_in("mara"), time.time()
    for hours, says in ((23, 200), (46, 200), (71, 302)):
        monkeypatch.setattr("labeling.people.middleware.time.time", lambda at=hours: now + at * 3600)
        assert laptop.get("/queue/").status_code == says, hours


def test_a_session_ends_14_days_after_its_sign_in(
    rater_user: User, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.LACE_SESSION_IDLE_HOURS = 1000
    laptop, now = signed_in("mara"), time.time()
    for days, says in ((13, 200), (15, 302)):
        monkeypatch.setattr("labeling.people.middleware.time.time", lambda at=days: now + at * 86_400)
        assert laptop.get("/queue/").status_code == says, days


def test_a_page_costs_no_write_for_the_limits_within_an_hour(rater_user: User) -> None:
    laptop = signed_in("mara")
    laptop.get("/queue/")
    with CaptureQueriesContext(connection) as queries:
        laptop.get("/queue/")
    assert not [one for one in queries if "UPDATE" in one["sql"] and "django_session" in one["sql"]]
