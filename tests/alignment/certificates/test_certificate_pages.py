"""The pages of certificates."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.certificates.queries.certificates import certificate_state
from alignment.models.certificates import Certificate
from evaluation.models.runs import Run
from labeling.models.labels import Consensus
from labeling.models.people import User
from tests.factories.certificates import make_qualifying, stored_certificate
from tests.factories.compared_runs import Compared, text_of
from tests.factories.rows import make_set

pytestmark = pytest.mark.django_db
build_compared = make_qualifying


def test_a_lead_issues_one_on_the_reports_page_and_revokes_it(compared: Compared, lead: Client) -> None:
    report = f"/reports/runs/{compared.run.pk}/"
    assert "Issue a certificate on dev" in text_of(lead.get(report + "?split=dev"))
    answer = lead.post(report + "certificate/", {"split": "dev", "days": "30"}, follow=True)
    row = Certificate.objects.get()
    shown = text_of(answer)
    title = f"Certificate {row.pk}: 1 of 3 criteria on dev"
    for words in (f"{title} was issued", f"<title>{title}", f"<h1>{title} <", "Valid", row.signature):
        assert words in shown, words
    assert row.expires_at - row.issued_at == timedelta(days=30)
    answer = lead.post(f"/certificates/{row.pk}/revoke/", {"reason": "Wrong labels"}, follow=True)
    assert "Wrong labels" in text_of(answer)
    assert "Revoked" in text_of(lead.get("/certificates/"))


def test_revoking_without_a_reason_says_so(certificate: Certificate, lead: Client) -> None:
    answer = lead.post(f"/certificates/{certificate.pk}/revoke/", {"reason": " "})
    assert "Give a reason" in text_of(answer)
    assert certificate_state(certificate).holds


def test_no_form_where_it_cannot_be_certified(compared: Compared, lead: Client) -> None:
    url = f"/reports/runs/{compared.run.pk}/"
    assert 'id="certify"' in text_of(lead.get(url))
    assert 'id="certify"' not in text_of(lead.get(url + "?against=each-rater"))
    Run.objects.update(state="cancelled")
    assert 'id="certify"' not in text_of(lead.get(url))


def test_texts_in_a_stored_body_are_texts(certificate: Certificate, lead: Client) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e"
    body = certificate.body
    body["judge"]["name"] = body["judge"]["model"] = body["issued_by"] = body["labels"]["set"] = evil
    body["topics"] = [{"name": evil, "chats": 1}]
    body["limits"] = [evil]
    body["criteria"][0]["reasons"] = body["criteria"][0]["cautions"] = [evil]
    body["criteria"][0]["question"]["text"] = evil
    Certificate.objects.update(body=body, revoked_at=timezone.now(), revoked_by=1, reason=evil)
    Certificate.objects.update(revoked_by=certificate.issued_by)
    for url in ("/certificates/", f"/certificates/{certificate.pk}/"):
        shown = text_of(lead.get(url))
        assert "<img" not in shown
        assert "\u202e" not in shown


@pytest.mark.heavy
def test_the_list_takes_the_same_queries_however_many(
    compared: Compared, lead: Client, author: Client, lead_user: User
) -> None:
    def queries(client: Client) -> int:
        with CaptureQueriesContext(connection) as caught:
            client.get("/certificates/")
        return len(caught)

    stored_certificate(compared.run, by=lead_user, split="dev")
    first = [queries(client) for client in (lead, author)]
    for split in ("", "train", "holdout"):
        stored_certificate(compared.run, by=lead_user, split=split)
    assert [queries(client) for client in (lead, author)] == first


def links(row: Certificate) -> tuple[str, str]:
    """The report that it was made from, and the run's as it is now."""
    run = reverse("alignment:report_run", args=[row.report.run_id])
    return reverse("alignment:report_stored", args=[row.report_id]), run


def test_it_leads_to_the_report_that_it_was_made_from(
    certificate: Certificate, lead: Client, author: Client
) -> None:
    was, now = links(certificate)
    for client in (lead, author):
        shown = text_of(client.get(f"/certificates/{certificate.pk}/"))
        assert (f'href="{was}"' in shown, f'href="{now}"' in shown) == (True, False)
        assert client.get(was).status_code == 200


def test_who_may_not_open_that_report_is_led_to_the_runs(
    compared: Compared, lead_user: User, lead: Client, author: Client
) -> None:
    """A held-out chat of dev that nobody answered is no figure of the certificate; the report covers it."""
    make_set(compared.rubric, compared.chat(1), name="gold", split="holdout")
    Consensus.objects.filter(chat=compared.chat(1)).delete()
    row = stored_certificate(compared.run, by=lead_user)
    was, now = links(row)
    for client, code, shown, other in ((lead, 200, was, now), (author, 404, now, was)):
        assert client.get(was).status_code == code
        page = text_of(client.get(f"/certificates/{row.pk}/"))
        assert (f'href="{shown}"' in page, f'href="{other}"' in page) == (True, False)


def test_a_report_stored_before_it_was_pinned_has_no_page_and_gives_way_to_the_runs(
    certificate: Certificate, lead: Client
) -> None:
    report = certificate.report
    report.body.pop("pinned")
    report.save()
    assert f'href="{links(certificate)[1]}"' in text_of(lead.get(f"/certificates/{certificate.pk}/"))
