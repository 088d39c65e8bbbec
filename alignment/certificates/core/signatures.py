"""Ed25519 signatures over canonical JSON; the public key verifies them offline."""

import base64
import binascii
import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from evaluation.core.hashing import canonical


def sign(body: Any, key: Ed25519PrivateKey) -> str:
    """Return the signature of a body, in base64.

    Parameters
    ----------
    body : texts, whole numbers, booleans and None only. Without fractions its canonical text is that of
        RFC 8785 in every programming language.
    """
    return base64.b64encode(key.sign(canonical(body).encode())).decode()


def verifies(body: Any, signature: str, public: str) -> bool:
    """Return whether the owner of this public key signed exactly this body.

    Examples
    --------
    >>> key = Ed25519PrivateKey.generate()
    >>> signature = sign({"a": 1}, key)
    >>> verifies({"a": 1}, signature, public_text(key)), verifies({"a": 2}, signature, public_text(key))
    (True, False)
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        key.verify(base64.b64decode(signature, validate=True), canonical(body).encode())
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public key, 32 bytes in base64."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def key_id(public: str) -> str:
    """Return a short name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(base64.b64decode(public)).hexdigest()[:16]
