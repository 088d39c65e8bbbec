"""Certificates: what they say, who issues them, what ends them, and that nobody can forge one."""

import base64
import json
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries

from alignment.core.signatures import signed
from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from alignment.selectors.certificates import certificate_state, certificate_states, certificate_verified
from alignment.services.certificate_keys import signing_key
from alignment.services.certificates import CertificateRefused, certificate_issue, certificate_revoke
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle, Promotion
from evaluation.models.runs import Run
from evaluation.runner.plan import current_endpoint
from evaluation.selectors.profiles import default_profile, profile_choice
from evaluation.services.judges import judge_ensure
from labeling.core.problems import InputProblem
from labeling.models.labels import Consensus, Label
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion
from tests.alignment.certifying import stored_certificate
from tests.alignment.compared import Compared, add_chats, text_of
from tests.alignment.prompted import a_version
from tests.alignment.quality import polite

pytestmark = pytest.mark.django_db

RECIPE = {"engine": "direct", "knowledge": "static"}


@pytest.fixture
def certificate(compared: Compared, lead_user: User) -> Certificate:
    """On the run of an imported judge."""
    return certificate_issue(run=compared.run, by=lead_user)


@pytest.fixture
def in_use(settings: Settings, compared: Compared, lead_user: User) -> Certificate:
    """On the run of a judge that is the default profile's."""
    settings.OPENAI_BASE_URL = "http://localhost:9/v1"
    settings.LACE_REASONING_MODEL = "model-a"
    JudgeProfile.objects.all().delete()
    JudgeProfile.objects.create(name="default", config=RECIPE, is_default=True)
    article(polite(), "refunds", "Within 14 days.")
    compared.run.judge = todays_judge(compared)
    compared.run.save()
    return certificate_issue(run=compared.run, by=lead_user)


def todays_judge(compared: Compared) -> Judge:
    profile = default_profile()
    assert profile is not None
    rows = Criterion.objects.select_related("dimension").order_by("dimension__position", "position")
    return judge_ensure(choice=profile_choice(profile), criteria=list(rows), endpoint=current_endpoint())


def article(criterion: Criterion, key: str, text: str) -> None:
    row, _ = KnowledgeArticle.objects.get_or_create(key=key)
    CriterionArticle.objects.get_or_create(criterion=criterion, article=row)
    number = row.versions.count() + 1
    ArticleVersion.objects.create(article=row, number=number, title=key, text=text, content_hash=text)


def why(certificate: Certificate) -> tuple[str, tuple[str, ...]]:
    state = certificate_state(Certificate.objects.get(pk=certificate.pk))
    return state.word, state.reasons


def entry(certificate: Certificate, key: str) -> dict[str, Any]:
    (found,) = (one for one in certificate.body["criteria"] if one["key"] == key)
    return dict(found)


# ---------- what it says ----------


def test_it_says_what_the_judge_may_be_used_for_on_which_labels(compared: Compared, lead_user: User) -> None:
    Criterion.objects.filter(key="wrong_fact").update(tier="subjective")
    body = certificate_issue(run=compared.run, by=lead_user, split="dev").body
    assert {one["key"]: one["use"] for one in body["criteria"]} == {
        "polite": "none",
        "wrong_fact": "directional",
        "welcome": "none",
    }
    assert "not enough human True labels: 10 of 30" in body["criteria"][0]["reasons"]
    labels = body["labels"]
    assert (labels["set"], labels["split"], labels["chats"]) == ("calibration", "dev", 20)
    assert (labels["labels"], labels["raters"], labels["against"]) == (180, 3, "consensus")
    assert labels["first"] <= labels["last"]
    assert body["topics"] == [{"name": "Delivery", "chats": 20}]
    assert body["report"]["pin"] == Report.objects.get().pin
    assert any(limit.startswith("measured on dev") for limit in body["limits"])
    assert any(limit.startswith("an imported judge") for limit in body["limits"])
    assert any(limit.startswith("no language is claimed") for limit in body["limits"])


def test_aligned_on_enough_labels_may_score_production(compared: Compared, lead_user: User) -> None:
    add_chats(compared, to=120)
    found = entry(certificate_issue(run=compared.run, by=lead_user), "polite")
    assert (found["use"], found["people_true"], found["people_false"]) == ("production", 60, 60)
    assert found["tpr"]["value"] == "0.8000"
    assert float(found["tpr"]["low"]) < 0.8 < float(found["tpr"]["high"])


def test_nothing_that_is_signed_is_a_fraction(certificate: Certificate) -> None:
    def fractions(value: Any) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from fractions(one)

    assert list(fractions(certificate.body)) == []


def test_the_same_link_shows_the_same_numbers_after_new_labels(
    certificate: Certificate, compared: Compared, lead: Client
) -> None:
    url = f"/api/certificates/{certificate.pk}/"
    before = lead.get(url).json()
    Label.objects.update(value=True)
    Consensus.objects.update(state="true")
    Criterion.objects.update(labels_seq=99)
    assert lead.get(url).json() == before


# ---------- who issues one, and on what ----------


def test_it_lasts_90_days_unless_said_otherwise(certificate: Certificate, compared: Compared) -> None:
    assert certificate.expires_at - certificate.issued_at == timedelta(days=90)
    event = AuditEvent.objects.get(verb="certificate issued")
    assert (event.object_id, event.actor) == (certificate.pk, certificate.issued_by)


@pytest.mark.parametrize("days", [0, -1, 366])
def test_it_lasts_from_1_to_365_days(compared: Compared, lead_user: User, days: int) -> None:
    with pytest.raises(CertificateRefused, match="from 1 to 365 days"):
        certificate_issue(run=compared.run, by=lead_user, days=days)
    assert not Certificate.objects.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "running", "finished_at": None}, "is not finished"),
        ({"state": "cancelled"}, "is not finished"),
        ({"purpose": "try"}, "only tried"),
        ({"purpose": "noise"}, "only tried"),
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
    with pytest.raises(CertificateRefused, match=f"certificate {certificate.pk} on this very report lasts"):
        certificate_issue(run=compared.run, by=lead_user)
    longer = certificate_issue(run=compared.run, by=lead_user, days=180)
    certificate_revoke(certificate=longer, reason="Too long", by=lead_user)
    assert certificate_issue(run=compared.run, by=lead_user, days=120).pk > longer.pk


def test_a_judge_that_is_not_in_use_is_not_certified(in_use: Certificate, lead_user: User) -> None:
    Certificate.objects.all().delete()
    JudgeProfile.objects.update(config=RECIPE | {"samples": 3})
    with pytest.raises(CertificateRefused, match="no longer the one in use: the default profile"):
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
    assert "Revoke it" not in text_of(author.get(f"/certificates/{certificate.pk}/"))


# ---------- what ends it ----------


def test_a_fresh_one_holds(in_use: Certificate) -> None:
    assert why(in_use) == ("valid", ())


def test_its_time_ends_it(certificate: Certificate) -> None:
    past = timezone.now() - timedelta(days=100)
    Certificate.objects.update(issued_at=past, expires_at=past + timedelta(days=90))
    word, (reason,) = why(certificate)
    assert (word, reason[:19]) == ("expired", "its time is over si")


def test_a_promoted_prompt_ends_it(in_use: Certificate) -> None:
    Promotion.objects.create(criterion=polite(), version=a_version(polite()), reason="Better")
    assert why(in_use) == ("expired", ("polite: another prompt has been released",))


def test_the_same_prompt_promoted_again_does_not(in_use: Certificate) -> None:
    last = Promotion.objects.filter(criterion=polite()).latest("pk")
    Promotion.objects.create(criterion=polite(), version=last.version, reason="Once more")
    assert why(in_use) == ("valid", ())


def test_another_model_ends_it(in_use: Certificate, settings: Settings) -> None:
    settings.LACE_REASONING_MODEL = "model-b"
    assert why(in_use) == ("expired", ("the default profile asks another model: model, formatter",))


def test_another_endpoint_ends_it(in_use: Certificate, settings: Settings) -> None:
    settings.OPENAI_BASE_URL = "http://localhost:10/v1"
    assert why(in_use) == ("expired", ("the default profile asks another model: endpoint",))


@pytest.mark.parametrize("changes", [{"engine": "debate"}, {"samples": 3}, {"grouping": "criterion"}])
def test_other_settings_end_it(in_use: Certificate, changes: dict[str, Any]) -> None:
    JudgeProfile.objects.update(config=RECIPE | changes)
    assert why(in_use) == ("expired", ("the default profile asks with other settings",))


def test_another_default_profile_ends_it(in_use: Certificate) -> None:
    JudgeProfile.objects.update(is_default=False)
    assert why(in_use)[0] == "expired"
    JudgeProfile.objects.create(name="same", config=RECIPE, is_default=True)
    assert why(in_use) == ("valid", ())


def test_newer_knowledge_ends_it(in_use: Certificate) -> None:
    article(polite(), "refunds", "Within 30 days.")
    assert why(in_use) == ("expired", ("the articles that the judge reads are no longer the same",))


def test_an_article_that_no_criterion_of_it_reads_does_not(in_use: Certificate) -> None:
    row = KnowledgeArticle.objects.create(key="unread")
    ArticleVersion.objects.create(article=row, number=1, title="Unread", text="No.", content_hash="n")
    assert why(in_use) == ("valid", ())


@pytest.mark.parametrize("whose", ["certificate", "in_use"])
def test_another_question_ends_it_of_every_judge(request: pytest.FixtureRequest, whose: str) -> None:
    row = request.getfixturevalue(whose)
    version = polite().versions.latest("number")
    version.pk, version.number = None, version.number + 1
    version.save()
    assert why(row) == ("valid", ())  # a guideline alone is no other question
    version.pk, version.number, version.content_hash = None, version.number + 1, "other"
    version.save()
    assert why(row) == ("expired", ("polite: the question was changed",))


def test_a_retired_criterion_ends_it(certificate: Certificate) -> None:
    Criterion.objects.filter(key="polite").update(state="retired")
    assert why(certificate) == ("expired", ("polite: the criterion was retired",))


def test_revoking_ends_it_for_good_with_a_reason(certificate: Certificate, lead_user: User) -> None:
    with pytest.raises(CertificateRefused, match="needs a reason"):
        certificate_revoke(certificate=certificate, reason=" ", by=lead_user)
    certificate_revoke(certificate=certificate, reason="Labels were wrong", by=lead_user)
    assert why(certificate) == ("revoked", ("Labels were wrong",))
    with pytest.raises(CertificateRefused, match="was revoked already"):
        certificate_revoke(certificate=certificate, reason="Again", by=lead_user)
    assert AuditEvent.objects.filter(verb="certificate revoked", object_id=certificate.pk).count() == 1


def test_without_an_endpoint_nobody_can_tell_and_it_does_not_hold(
    in_use: Certificate, settings: Settings
) -> None:
    settings.OPENAI_BASE_URL = "nonsense"
    word, (reason,) = why(in_use)
    assert (word, "nobody can tell which judge would answer" in reason) == ("expired", True)


def test_states_take_the_same_queries_however_many(
    in_use: Certificate, lead_user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    run = in_use.judge.runs.get()
    for split in ("dev", "holdout", "train"):
        stored_certificate(run, by=lead_user, split=split)
    one, every = [in_use], list(Certificate.objects.select_related("judge"))
    assert len(every) == 4
    for rows in (one, every):
        with django_assert_num_queries(9):
            assert {state.word for state in certificate_states(rows).values()} == {"valid"}


def test_reading_a_state_writes_nothing(in_use: Certificate) -> None:
    before = Judge.objects.count(), Promotion.objects.count()
    JudgeProfile.objects.update(config=RECIPE | {"samples": 5})
    certificate_state(in_use)
    assert (Judge.objects.count(), Promotion.objects.count()) == before


# ---------- the signature ----------


def test_anybody_with_the_public_key_verifies_it_without_the_workbench(
    certificate: Certificate, lead: Client
) -> None:
    given = lead.get(f"/api/certificates/{certificate.pk}/").json()
    (published,) = lead.get("/api/certificates/keys/").json()
    assert published["key"] == given["body"]["key"]
    text = json.dumps(given["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(published["public_key"]))
    public.verify(base64.b64decode(given["signature"]), text.encode())


def verify(client: Client, given: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/api/certificates/verify/", given, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_what_the_api_gave_verifies_as_genuine(certificate: Certificate, author: Client) -> None:
    given = author.get(f"/api/certificates/{certificate.pk}/").json()
    found = verify(author, given)
    assert (found["answer"], found["state"], found["id"]) == ("genuine", "valid", certificate.pk)


def test_a_genuine_one_that_ended_says_why(certificate: Certificate, lead_user: User, lead: Client) -> None:
    given = lead.get(f"/api/certificates/{certificate.pk}/").json()
    certificate_revoke(certificate=certificate, reason="Labels were wrong", by=lead_user)
    found = verify(lead, given)
    assert (found["answer"], found["state"]) == ("genuine", "revoked")
    assert found["reasons"] == ["Labels were wrong"]


def test_one_changed_word_makes_it_forged(certificate: Certificate, lead: Client) -> None:
    given = lead.get(f"/api/certificates/{certificate.pk}/").json()
    changes: list[dict[str, Any]] = [{"expires_at": "2099-01-01T00:00:00+00:00"}, {"limits": []}, {"more": 1}]
    for change in changes:
        found = verify(lead, given | {"body": given["body"] | change})
        assert (found["answer"], found["reason"]) == ("forged", "its text was changed after it was signed")


def test_anothers_key_makes_it_forged(certificate: Certificate, lead: Client) -> None:
    signature = signed(certificate.body, Ed25519PrivateKey.generate())
    found = verify(lead, {"body": certificate.body, "signature": signature})
    assert (found["answer"], found["reason"]) == ("forged", "this workbench has not signed it")


def test_our_key_without_our_record_is_unknown(certificate: Certificate, compared: Compared) -> None:
    body = certificate.body | {"run": 999}
    assert certificate_verified(body=body, signature=signed(body, signing_key())).word == "unknown"


@pytest.mark.parametrize(
    "given",
    [
        {},
        [],
        {"body": [], "signature": "x"},
        {"body": {}},
        {"body": {"a": "x" * 1_000_001}, "signature": "x"},
    ],
)
def test_what_is_no_certificate_is_refused(certificate: Certificate, lead: Client, given: Any) -> None:
    answer = lead.post("/api/certificates/verify/", json.dumps(given), content_type="application/json")
    assert answer.status_code == 400


@pytest.mark.parametrize("signature", ["x", "é", "====", "AAAA", "💥"])
def test_a_signature_that_is_none_is_forged(certificate: Certificate, lead: Client, signature: str) -> None:
    assert verify(lead, {"body": {"a": "é"}, "signature": signature})["answer"] == "forged"


def test_a_certificate_signed_with_an_older_key_still_verifies(
    certificate: Certificate, compared: Compared, lead: Client, lead_user: User
) -> None:
    Path(settings.LACE_CERTIFICATE_KEY).rename(f"{settings.LACE_CERTIFICATE_KEY}.old")
    newer = certificate_issue(run=compared.run, by=lead_user, split="dev")
    assert newer.public_key != certificate.public_key
    for row in (certificate, newer):
        assert verify(lead, {"body": row.body, "signature": row.signature})["answer"] == "genuine"
    assert len(lead.get("/api/certificates/keys/").json()) == 2


def test_the_key_is_made_once_and_its_owners_alone(certificate: Certificate) -> None:
    path = Path(settings.LACE_CERTIFICATE_KEY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir() if one.name.startswith(".")] == []


def test_a_file_that_is_no_key_is_named(
    compared: Compared, lead_user: User, settings: Settings, tmp_path: Path
) -> None:
    settings.LACE_CERTIFICATE_KEY = tmp_path / "key.pem"
    (tmp_path / "key.pem").write_text("nonsense")
    with pytest.raises(InputProblem, match=r"LACE_CERTIFICATE_KEY: .*key.pem holds no Ed25519"):
        certificate_issue(run=compared.run, by=lead_user)
    settings.LACE_CERTIFICATE_KEY = tmp_path / "nowhere" / "key.pem"
    with pytest.raises(InputProblem, match=r"LACE_CERTIFICATE_KEY: .*No such file"):
        certificate_issue(run=compared.run, by=lead_user)
    assert not Certificate.objects.exists()


# ---------- held-out chats ----------


def test_figures_of_fewer_than_10_held_out_chats_are_for_leads_alone(
    compared: Compared, lead_user: User, lead: Client, author: Client
) -> None:
    row = certificate_issue(run=compared.run, by=lead_user, split="holdout")
    urls = (f"/certificates/{row.pk}/", f"/api/certificates/{row.pk}/")
    assert {author.get(url).status_code for url in urls} == {200}  # there are 10
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
    taken = Consensus.objects.filter(chat=compared.chat(4))
    rows = list(taken)
    taken.delete()
    row = certificate_issue(run=compared.run, by=lead_user, split="holdout")
    Consensus.objects.bulk_create(rows)
    assert author.get(f"/certificates/{row.pk}/").status_code == 404
    dev = certificate_issue(run=compared.run, by=lead_user, split="dev")
    assert author.get(f"/certificates/{dev.pk}/").status_code == 200


# ---------- pages ----------


def test_a_lead_issues_one_on_the_reports_page_and_revokes_it(compared: Compared, lead: Client) -> None:
    report = f"/reports/runs/{compared.run.pk}/"
    assert "Issue a certificate on dev" in text_of(lead.get(report + "?split=dev"))
    answer = lead.post(report + "certificate/", {"split": "dev", "days": "30"}, follow=True)
    row = Certificate.objects.get()
    shown = text_of(answer)
    for words in (f"Certificate {row.pk}", "calibration, dev", "Valid", row.signature, "0 of 3 criteria"):
        assert words in shown, words
    assert row.expires_at - row.issued_at == timedelta(days=30)
    answer = lead.post(f"/certificates/{row.pk}/revoke/", {"reason": "Wrong labels"}, follow=True)
    assert "Wrong labels" in text_of(answer)
    assert "Revoked" in text_of(lead.get("/certificates/"))


@pytest.mark.parametrize(("days", "words"), [("0", "greater than or equal to 1"), ("x", "whole number")])
def test_what_stands_against_it_is_said_on_the_report(
    compared: Compared, lead: Client, days: str, words: str
) -> None:
    answer = lead.post(f"/reports/runs/{compared.run.pk}/certificate/", {"days": days}, follow=True)
    assert words in text_of(answer)
    assert "No certificate was issued" in text_of(answer)
    assert not Certificate.objects.exists()


def test_revoking_without_a_reason_says_so(certificate: Certificate, lead: Client) -> None:
    answer = lead.post(f"/certificates/{certificate.pk}/revoke/", {"reason": " "})
    assert "Say why" in text_of(answer)
    assert certificate_state(certificate).holds


def test_no_form_where_it_cannot_be_certified(compared: Compared, lead: Client) -> None:
    url = f"/reports/runs/{compared.run.pk}/"
    assert "Certify this judge" in text_of(lead.get(url))
    assert "Certify this judge" not in text_of(lead.get(url + "?against=each-rater"))
    Run.objects.update(state="cancelled")
    assert "Certify this judge" not in text_of(lead.get(url))


def test_texts_in_a_stored_body_are_texts(certificate: Certificate, lead: Client) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e"
    body = certificate.body
    body["judge"]["name"] = body["judge"]["model"] = body["issued_by"] = body["labels"]["set"] = evil
    body["topics"] = [{"name": evil, "chats": 1}]
    body["limits"] = [evil]
    body["criteria"][0]["reasons"] = [evil]
    body["criteria"][0]["question"]["text"] = evil
    Certificate.objects.update(body=body, revoked_at=timezone.now(), revoked_by=1, reason=evil)
    Certificate.objects.update(revoked_by=certificate.issued_by)
    for url in ("/certificates/", f"/certificates/{certificate.pk}/"):
        shown = text_of(lead.get(url))
        assert "<img" not in shown
        assert "\u202e" not in shown


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
