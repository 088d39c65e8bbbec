"""Certificates: what they say, who issues them, on what, and who reads them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from alignment.certificates.core.signatures import public_text, sign
from alignment.certificates.services.certificates import (
    CertificateRefused,
    certificate_issue,
    certificate_revoke,
)
from alignment.certificates.services.keys import signing_key
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import SampleRequest
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.reports.core import build_report
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import ChatSetMember
from labeling.models.labels import Consensus
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion
from tests.factories.certificates import RECIPE, invert, make_qualifying, stored_certificate
from tests.factories.compared_runs import Compared, text_of
from tests.factories.label_samples import strip
from tests.factories.rater_quality import polite
from tests.factories.sampled_labels import answer

pytestmark = pytest.mark.django_db
build_compared = make_qualifying

# ---------- what it says ----------


def entry(certificate: Certificate, key: str) -> dict[str, Any]:
    return entry_in(certificate.body, key)


def entry_in(body: dict[str, Any], key: str) -> dict[str, Any]:
    (found,) = (one for one in body["criteria"] if one["key"] == key)
    return dict(found)


def test_it_says_what_the_judge_may_be_used_for_on_which_labels(compared: Compared, lead_user: User) -> None:
    Criterion.objects.filter(key="wrong_fact").update(tier="subjective")
    body = certificate_issue(run=compared.run, by=lead_user, split="dev").body
    assert {one["key"]: one["use"] for one in body["criteria"]} == {
        "polite": "production",
        "wrong_fact": "directional",
        "welcome": "none",
    }
    assert "needs 30 more human False labels (0 of 30)" in entry_in(body, "welcome")["reasons"]
    labels = body["labels"]
    assert (labels["set"], labels["split"], labels["chats"]) == ("calibration", "dev", 100)
    assert (labels["labels"], labels["raters"], labels["against"]) == (900, 3, "consensus")
    assert labels["first"] <= labels["last"]
    assert body["topics"] == [{"name": "Delivery", "chats": 100}]
    assert body["report"]["pin"] == Report.objects.get(kind=Report.Kind.REPORT).pin
    assert any(limit.startswith("measured on dev") for limit in body["limits"])
    assert any(limit.startswith("an imported judge") for limit in body["limits"])
    assert any(limit.startswith("no claim about languages") for limit in body["limits"])


def test_labels_sampled_by_verdict_are_named(compared: Compared, lead_user: User) -> None:
    strip(compared, range(9, 201))
    scope = Scope(compared.chat_set, compared.run)
    wish = SampleRequest(scope=scope, criteria=(polite(),), name="More", chats=30, suspect=22, seed=3)
    answer(create_sample(wish, by=lead_user).chat_set, compared)
    body = stored_certificate(compared.run, by=lead_user).body
    cautions = entry_in(body, "polite")["cautions"]
    assert "30 of the 38 compared chats were sampled by verdict" in cautions[0]
    assert any("30 labelled chats were sampled by verdict" in limit for limit in body["limits"])


@pytest.mark.django_db(transaction=True)
def test_the_database_is_not_held_while_the_report_is_computed(
    compared: Compared, lead_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []

    def watched(*given: Any, **options: Any) -> dict[str, Any]:
        held.append(connection.in_atomic_block)
        return build_report(*given, **options)

    monkeypatch.setattr("alignment.reports.queries.reports.build_report", watched)
    certificate_issue(run=compared.run, by=lead_user)
    assert held == [False]


def test_aligned_on_enough_labels_may_score_production(compared: Compared, lead_user: User) -> None:
    found = entry(certificate_issue(run=compared.run, by=lead_user), "polite")
    assert (found["use"], found["people_true"], found["people_false"]) == ("production", 100, 100)
    assert found["tpr"]["value"] == "0.8000"
    assert float(found["tpr"]["low"]) < 0.8 < float(found["tpr"]["high"])


def test_what_misleads_in_a_figure_is_signed_with_it(certificate: Certificate, lead: Client) -> None:
    (caution,) = entry(certificate, "welcome")["cautions"]
    assert caution.startswith("agreement is 0.89 and AC1 0.88, but kappa 0.00: only 0 of")
    assert entry(certificate, "polite")["cautions"] == []
    assert "Agreement is 0.89 and AC1 0.88" in text_of(lead.get(f"/certificates/{certificate.pk}/"))


def test_where_the_judge_said_not_applicable_is_signed_and_shown(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    verdicts = Verdict.objects.filter(criterion__key="polite")
    verdicts.filter(chat__external_id__in=["chat-1", "chat-3", "chat-2"]).update(value=None)
    verdicts.filter(chat__external_id="chat-4").update(value=None, state=Verdict.State.UNPARSED)
    certificate = certificate_issue(run=compared.run, by=lead_user)
    found = entry(certificate, "polite")
    assert (found["judge_not_applicable"], found["no_verdict"]) == (3, {"unparsed": 1})
    assert (found["unjudged"], found["asked"]) == ({"true": 2, "false": 2}, 200)
    shown = text_of(lead.get(f"/certificates/{certificate.pk}/"))
    assert "3 not applicable, 1 unparsed" in shown
    assert "Neither True nor False" in shown and "No verdict" not in shown


def test_one_signed_before_not_applicable_was_counted_verifies_and_claims_less(
    certificate: Certificate, lead: Client
) -> None:
    body = certificate.body
    for one in body["criteria"]:
        del one["judge_not_applicable"], one["unjudged"]
    assert verified(certificate, body, lead) == "genuine"
    shown = text_of(lead.get(f"/certificates/{certificate.pk}/"))
    assert "No verdict" in shown and "Neither True nor False" not in shown


def test_nothing_that_is_signed_is_a_fraction(certificate: Certificate) -> None:
    def fractions(value: Any) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from fractions(one)

    assert list(fractions(certificate.body)) == []


def test_it_says_which_software_signed_it(certificate: Certificate, lead: Client, settings: Settings) -> None:
    assert certificate.body["software"] == settings.SOFTWARE == {"name": "lace-workbench", "version": ANY}
    said = "{name} {version}".format(**settings.SOFTWARE)
    assert said in text_of(lead.get(f"/certificates/{certificate.pk}/"))


def test_one_signed_before_the_software_was_named_verifies_and_opens(
    certificate: Certificate, lead: Client
) -> None:
    body = {name: value for name, value in certificate.body.items() if name != "software"}
    assert verified(certificate, body, lead) == "genuine"
    assert "Software" not in text_of(lead.get(f"/certificates/{certificate.pk}/"))


def verified(certificate: Certificate, body: dict[str, Any], lead: Client) -> str:
    """What the workbench says of the certificate with this body, once that is signed."""
    key = signing_key()
    Certificate.objects.update(body=body, signature=sign(body, key), public_key=public_text(key))
    given = lead.get(f"/api/certificates/{certificate.pk}/").json()
    found = lead.post("/api/certificates/verify/", given, content_type="application/json")
    return str(found.json()["answer"])


def test_the_same_link_shows_the_same_numbers_after_new_labels(
    certificate: Certificate, compared: Compared, lead: Client
) -> None:
    url = f"/api/certificates/{certificate.pk}/"
    before = lead.get(url).json()
    invert(polite())
    after = lead.get(url).json()
    assert all(after[name] == before[name] for name in ("body", "signature", "public_key"))
    assert "0.8000" in text_of(lead.get(url)) and "<b>0.80</b>" in text_of(
        lead.get(f"/certificates/{certificate.pk}/")
    )


# ---------- who issues one, and on what ----------


def test_it_lasts_90_days_unless_said_otherwise(certificate: Certificate, compared: Compared) -> None:
    assert certificate.expires_at - certificate.issued_at == timedelta(days=90)
    event = AuditEvent.objects.get(verb="certificate issued")
    assert (event.object_id, event.actor) == (certificate.pk, certificate.issued_by)


@pytest.mark.parametrize("days", [0, -1, 366])
def test_it_lasts_from_1_to_365_days(compared: Compared, lead_user: User, days: int) -> None:
    with pytest.raises(CertificateRefused, match="for 1 to 365 days"):
        certificate_issue(run=compared.run, by=lead_user, days=days)
    assert not Certificate.objects.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "running", "finished_at": None}, "is not finished"),
        ({"state": "cancelled"}, "is not finished"),
        ({"purpose": "try"}, "is a try"),
        ({"purpose": "noise"}, "is a try"),
    ],
)
def test_only_a_finished_evaluation_is_certified(
    compared: Compared, lead_user: User, changes: dict[str, Any], message: str
) -> None:
    Run.objects.filter(pk=compared.run.pk).update(**changes)
    compared.run.refresh_from_db()
    with pytest.raises(CertificateRefused, match=message):
        certificate_issue(run=compared.run, by=lead_user)


def test_pressed_twice_it_is_issued_once(
    certificate: Certificate, compared: Compared, lead_user: User
) -> None:
    with pytest.raises(CertificateRefused, match=f"certificate {certificate.pk} on this report is already"):
        certificate_issue(run=compared.run, by=lead_user)
    longer = certificate_issue(run=compared.run, by=lead_user, days=180)
    certificate_revoke(certificate=longer, reason="Too long", by=lead_user)
    assert certificate_issue(run=compared.run, by=lead_user, days=120).pk > longer.pk


def test_a_judge_that_is_not_in_use_is_not_certified(in_use: Certificate, lead_user: User) -> None:
    Certificate.objects.all().delete()
    JudgeProfile.objects.update(config=RECIPE | {"samples": 3})
    with pytest.raises(CertificateRefused, match="no longer in use: the settings"):
        certificate_issue(run=in_use.judge.runs.get(), by=lead_user)


def test_only_leads_issue_and_revoke(certificate: Certificate, compared: Compared, author: Client) -> None:
    for url, body in (
        (f"/reports/runs/{compared.run.pk}/certificate/", {"days": 10}),
        (f"/certificates/{certificate.pk}/revoke/", {"reason": "No"}),
        ("/api/certificates/", {"run": compared.run.pk}),
        (f"/api/certificates/{certificate.pk}/revoke/", {"reason": "No"}),
    ):
        assert author.post(url, body).status_code == 404, url
    assert "Issue a certificate" not in text_of(author.get(f"/reports/runs/{compared.run.pk}/"))
    assert "Revoke…" not in text_of(author.get(f"/certificates/{certificate.pk}/"))


# ---------- held-out chats ----------


def answered_holdout(number: int) -> None:
    """Leave a consensus on so many of the holdout's chats."""
    members = ChatSetMember.objects.filter(split="holdout").order_by("position")
    Consensus.objects.filter(chat__in=list(members.values_list("chat", flat=True))[number:]).delete()


def test_figures_of_fewer_than_10_held_out_chats_are_for_leads_alone(
    compared: Compared, lead_user: User, lead: Client, author: Client
) -> None:
    answered_holdout(10)
    row = certificate_issue(run=compared.run, by=lead_user)
    urls = (f"/certificates/{row.pk}/", f"/api/certificates/{row.pk}/")
    assert {author.get(url).status_code for url in urls} == {200}
    Consensus.objects.filter(chat=compared.chat(4)).delete()
    for url in urls:
        assert (author.get(url).status_code, lead.get(url).status_code) == (404, 200)
    for url in ("/certificates/", "/api/certificates/"):
        assert row.signature not in text_of(author.get(url))
        assert f"certificates/{row.pk}/" not in text_of(author.get(url))
    assert f"Certificate {row.pk}" in text_of(lead.get("/certificates/"))


def test_what_was_of_9_when_it_was_issued_stays_for_leads(
    compared: Compared, lead_user: User, author: Client
) -> None:
    answered_holdout(10)
    taken = Consensus.objects.filter(chat=compared.chat(20))
    rows = list(taken)
    taken.delete()
    row = certificate_issue(run=compared.run, by=lead_user)
    Consensus.objects.bulk_create(rows)
    assert author.get(f"/certificates/{row.pk}/").status_code == 404
    dev = certificate_issue(run=compared.run, by=lead_user, split="dev")
    assert author.get(f"/certificates/{dev.pk}/").status_code == 200
