"""What a certificate allows: said before it is issued and on its chip, and what to do where it is nothing."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.models.certificates import Certificate
from labeling.models.chats import Chat, Topic
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.factories.certificates import stored_certificate
from tests.factories.compared_runs import Compared, one_of_each_status, text_of, urls
from tests.factories.page_text import words_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

ALTHOUGH = "Issue it although it permits no use on any criterion"


@pytest.fixture
def useful(compared: Compared) -> Compared:
    """One criterion of three is aligned."""
    one_of_each_status(compared)
    return compared


def issued(client: Client, compared: Compared, **given: str) -> Any:
    url = f"/reports/runs/{compared.run.pk}/certificate/"
    return client.post(url, {"days": "90", **given}, follow=True)


def chips(client: Client, row: Certificate) -> tuple[str, str]:
    """Of its page, and of its row in the list."""
    page, listed = client.get(f"/certificates/{row.pk}/"), client.get("/certificates/")
    return page.context["chip"][1], next(one["chip"][1] for one in listed.context["items"])


def row_of(client: Client, row: Certificate, key: str) -> dict[str, Any]:
    criteria = client.get(f"/certificates/{row.pk}/").context["criteria"]
    return dict(next(one for one in criteria if one["key"] == key))


# ---------- before it is issued ----------


def test_the_report_says_what_a_certificate_would_allow(useful: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")
    shown = words_of(lead.get(urls(useful)["report"]))
    assert "It would state: “May score production on 1 of 3 criteria; 1 is directional only.”" in shown
    assert ALTHOUGH not in shown


def test_one_that_allows_no_use_is_issued_only_when_that_is_confirmed(
    compared: Compared, lead: Client
) -> None:
    page = text_of(lead.get(urls(compared)["report"]))
    assert ALTHOUGH in page and "required" in page[page.index('name="although"') - 80 :][:200]
    refused = issued(lead, compared)
    assert "No certificate was issued: it would permit no use on any criterion: confirm" in words_of(refused)
    assert not Certificate.objects.exists()
    issued(lead, compared, although="on")
    assert Certificate.objects.count() == 1


def test_one_that_allows_something_needs_no_confirmation(useful: Compared, lead: Client) -> None:
    issued(lead, useful)
    assert Certificate.objects.count() == 1


@pytest.mark.parametrize("days", ["0", "366", "-1", "x", "", "1.5"])
def test_days_out_of_their_limits_are_refused_with_the_limits(
    useful: Compared, lead: Client, days: str
) -> None:
    shown = words_of(issued(lead, useful, days=days))
    assert "No certificate was issued: enter 1 to 365 whole days" in shown
    assert not Certificate.objects.exists()


# ---------- its chip ----------


def test_the_chip_of_a_valid_one_says_where_it_allows_little_or_nothing(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    nothing = stored_certificate(compared.run, by=lead_user)
    assert chips(lead, nothing) == ("Valid, permits no use",) * 2
    Criterion.objects.filter(key="welcome").update(tier="subjective")
    assert chips(lead, stored_certificate(compared.run, by=lead_user)) == ("Valid, directional only",) * 2


def test_one_that_allows_a_use_is_simply_valid(useful: Compared, lead: Client, lead_user: User) -> None:
    assert chips(lead, stored_certificate(useful.run, by=lead_user)) == ("Valid", "Valid")


def test_one_that_has_ended_says_that_alone(compared: Compared, lead: Client, lead_user: User) -> None:
    row = stored_certificate(compared.run, by=lead_user)
    lead.post(f"/certificates/{row.pk}/revoke/", {"reason": "Wrong"})
    assert chips(lead, row) == ("Revoked", "Revoked")


# ---------- what to do ----------


def test_a_criterion_that_may_not_be_used_names_the_next_step_as_the_report_does(
    useful: Compared, lead: Client, lead_user: User
) -> None:
    row = stored_certificate(useful.run, by=lead_user)
    report = {one["key"]: one for one in lead.get(urls(useful)["report"]).context["report"]["criteria"]}
    for key in ("polite", "welcome"):
        steps = row_of(lead, row, key)["next_steps"]
        assert steps and steps == report[key]["next_steps"]
    assert row_of(lead, row, "wrong_fact")["next_steps"] == []  # it may be used
    assert "Triage" in words_of(lead.get(f"/certificates/{row.pk}/"))


def test_one_that_has_ended_names_no_next_step(useful: Compared, lead: Client, lead_user: User) -> None:
    row = stored_certificate(useful.run, by=lead_user)
    lead.post(f"/certificates/{row.pk}/revoke/", {"reason": "Wrong"})
    assert row_of(lead, row, "polite")["next_steps"] == []


# ---------- around it ----------


def test_many_topics_are_folded(compared: Compared, lead: Client, lead_user: User) -> None:
    few = stored_certificate(compared.run, by=lead_user)
    assert "Delivery" in topics(lead, few)
    assert 'id="topics"' not in text_of(lead.get(f"/certificates/{few.pk}/"))
    for n in range(1, 21):
        topic = Topic.objects.create(key=f"t{n}", name=f"Topic {n}")
        Chat.objects.filter(external_id=f"chat-{n}").update(topic=topic)
    many = stored_certificate(compared.run, by=lead_user)
    assert "21, <a" in topics(lead, many)
    folded = text_of(lead.get(f"/certificates/{many.pk}/")).split('id="topics"')[1]
    assert "<summary>21 topics</summary>" in folded and "Topic 20 <small>1</small>" in folded


def topics(client: Client, row: Certificate) -> str:
    shown = text_of(client.get(f"/certificates/{row.pk}/"))
    return shown[shown.index("<dt>Topics") :].split("</div>")[0]


def test_a_stored_report_names_the_certificates_that_were_made_from_it(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    other = make_user("olga", Role.LEAD)
    first, second = (stored_certificate(compared.run, by=user) for user in (lead_user, other))
    stored_certificate(compared.run, by=lead_user, split="dev")
    page = lead.get(f"/reports/{first.report_id}/")
    assert [row.pk for row in page.context["certificates"]] == [first.pk, second.pk]
    assert f"Issued from it: certificate {first.pk} and certificate {second.pk} ." in words_of(page)
    assert f'href="/certificates/{second.pk}/"' in text_of(page)


def test_the_list_reads_no_report_to_show_a_certificate(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    stored_certificate(compared.run, by=lead_user)
    with CaptureQueriesContext(connection) as caught:
        lead.get("/certificates/")
    assert not any('"alignment_report"."body"' in query["sql"] for query in caught)
