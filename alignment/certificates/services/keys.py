"""The installation's signing key for certificates: created once, readable only by its owner."""

import os
import tempfile
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings

from common.problems import OPERATOR, InputProblem


def signing_key() -> Ed25519PrivateKey:
    """Return the key in the file LACE_CERTIFICATE_KEY; create the file if there is none.

    Raises InputProblem if the file cannot be read or written, or holds no Ed25519 key.
    """
    path = Path(settings.LACE_CERTIFICATE_KEY)
    try:
        if not path.exists():
            _make(path)
        text = path.read_bytes()
    except OSError as error:
        raise _unusable(f"{path}: {error.strerror}") from None
    try:
        key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _unusable(f"{path} is not an Ed25519 private key without a password")
    return key


def _unusable(problem: str) -> InputProblem:
    return InputProblem(
        f"the signing key cannot be used: {problem}. Ask {OPERATOR} to correct it",
        settings=("LACE_CERTIFICATE_KEY",),
    )


def _make(path: Path) -> None:
    """Create the file atomically; of two processes the first one's key stays."""
    text = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # NB: mkstemp creates the file with mode 0600.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(name)
