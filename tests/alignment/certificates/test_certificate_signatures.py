"""Nobody can forge a certificate; anybody can verify one."""

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.test import Client
from pytest_django import Settings

from alignment.certificates.core.signatures import sign
from alignment.certificates.queries.certificates import certificate_verified
from alignment.certificates.services.certificates import certificate_issue, certificate_revoke
from alignment.certificates.services.keys import signing_key
from alignment.models.certificates import Certificate
from common.problems import InputProblem
from labeling.models.people import User
from tests.factories.certificates import make_qualifying
from tests.factories.compared_runs import Compared

pytestmark = pytest.mark.django_db
build_compared = make_qualifying


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
        assert (found["answer"], found["reason"]) == ("forged", "the text was changed after signing")


def test_anothers_key_makes_it_forged(certificate: Certificate, lead: Client) -> None:
    signature = sign(certificate.body, Ed25519PrivateKey.generate())
    found = verify(lead, {"body": certificate.body, "signature": signature})
    assert (found["answer"], found["reason"]) == ("forged", "this workbench did not sign it")


def test_our_key_without_our_record_is_unknown(certificate: Certificate, lead_user: User) -> None:
    body = certificate.body | {"run": 999999}
    found = certificate_verified(body=body, signature=sign(body, signing_key()), user=lead_user)
    assert found.word == "unknown"


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
    with pytest.raises(InputProblem, match=r"the signing key cannot be used: .*key.pem is not an Ed25519"):
        certificate_issue(run=compared.run, by=lead_user)
    settings.LACE_CERTIFICATE_KEY = tmp_path / "nowhere" / "key.pem"
    with pytest.raises(InputProblem, match=r"the signing key cannot be used: .*No such file"):
        certificate_issue(run=compared.run, by=lead_user)
    assert not Certificate.objects.exists()
