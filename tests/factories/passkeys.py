"""A passkey in software: the key pair of an account, and the answers that a browser would send."""

import json
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import Client
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from labeling.models.people import User

HOST = "testserver"
SIGN_IN, SECOND_STEP = "/accounts/passkeys/login/", "/accounts/code/"
FLAGS = AuthenticatorData.FLAG


@dataclass(frozen=True)
class Passkey:
    """A key pair, and whom it names."""

    user: User
    number: bytes
    key: ec.EllipticCurvePrivateKey

    def answer(self, challenge: str, **changed: Any) -> str:
        """What the browser sends for a challenge of the server; `changed` replaces parts."""
        data = AuthenticatorData.create(_host(), FLAGS.UP | FLAGS.UV, 1)
        client = _client_data("webauthn.get", websafe_decode(challenge))
        signed = self.key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": websafe_encode(client),
            "authenticatorData": websafe_encode(data),
            "signature": websafe_encode(signed),
            "userHandle": websafe_encode(user_pk_to_url_str(self.user).encode()),
        }
        return json.dumps(_credential(self.number, response | changed))


def passkey_of(user: User) -> Passkey:
    """Add a passkey to an account."""
    passkey = Passkey(user, secrets.token_bytes(16), ec.generate_private_key(ec.SECP256R1()))
    public = AttestedCredentialData.create(
        Aaguid.NONE, passkey.number, ES256.from_cryptography_key(passkey.key.public_key())
    )
    data = AuthenticatorData.create(_host(), FLAGS.UP | FLAGS.UV | FLAGS.AT, 0, public)
    response = {
        "clientDataJSON": websafe_encode(_client_data("webauthn.create", b"any")),
        "attestationObject": websafe_encode(AttestationObject.create("none", data, {})),
    }
    credential = _credential(passkey.number, response)
    Authenticator.objects.create(
        user=user, type=Authenticator.Type.WEBAUTHN, data={"name": "A key", "credential": credential}
    )
    return passkey


def challenge_of(client: Client) -> str:
    """The challenge of the sign-in page."""
    options = client.get(SIGN_IN, secure=True, headers={"Accept": "application/json"}).json()
    return str(options["request_options"]["publicKey"]["challenge"])


def _credential(number: bytes, response: dict[str, str]) -> dict[str, Any]:
    name = websafe_encode(number)
    return {
        "id": name,
        "rawId": name,
        "type": "public-key",
        "clientExtensionResults": {},
        "response": response,
    }


def _client_data(kind: str, challenge: bytes) -> CollectedClientData:
    return CollectedClientData.create(kind, challenge, f"https://{HOST}")


def _host() -> bytes:
    return sha256(HOST.encode()).digest()
