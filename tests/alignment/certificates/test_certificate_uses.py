"""What a certificate allows: said before it is issued and on its chip, and what to do where it is nothing."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.certificates.services.certificates import NOTHING_QUALIFIES, nothing_to_certify
from alignment.models.certificates import Certificate
from labeling.models.chats import Chat, Topic
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.factories.certificates import stored_certificate
from tests.factories.compared_runs import Compared, one_of_each_status, text_of, urls
from tests.factories.page_text import words_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


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


def test_where_no_criterion_qualifies_it_is_refused_on_page_and_api(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")  # directional use alone is none
    page = words_of(lead.get(urls(compared)["report"]))
    assert f"No certificate can be issued: {NOTHING_QUALIFIES}." in page
    assert "Issue a certificate on" not in page
    assert f"No certificate was issued: {NOTHING_QUALIFIES}" in words_of(issued(lead, compared))
    answer = lead.post("/api/certificates/", {"run": compared.run.pk}, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (409, NOTHING_QUALIFIES)
    assert not Certificate.objects.exists()


def test_an_aligned_criterion_whose_labels_answer_another_text_does_not_qualify() -> None:
    entry = {"status": "aligned", "tier": "simple", "reasons": [], "questions": {"same": False}}
    assert nothing_to_certify({"criteria": [entry]}) == NOTHING_QUALIFIES
    assert nothing_to_certify({"criteria": [entry, entry | {"questions": {"same": True}}]}) == ""


@pytest.mark.parametrize("days", ["0", "366", "-1", "x", "", "1.5"])
def test_days_out_of_their_limits_are_refused_with_the_limits(
    useful: Compared, lead: Client, days: str
) -> None:
    shown = words_of(issued(lead, useful, days=days))
    assert "No certificate was issued: enter 1 to 365 whole days" in shown
    assert not Certificate.objects.exists()


# ---------- its chip ----------


def test_the_title_names_how_many_criteria_it_certifies_on_which_chats(
    useful: Compared, lead: Client, lead_user: User
) -> None:
    row = stored_certificate(useful.run, by=lead_user)
    assert lead.get(f"/certificates/{row.pk}/").context["title"] == (
        f"Certificate {row.pk}: 1 of 3 criteria on all splits"
    )


def test_one_that_holds_is_simply_valid(useful: Compared, lead: Client, lead_user: User) -> None:
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
