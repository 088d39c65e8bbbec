"""Encrypts the API keys of connected endpoints, with a key that is kept apart from the database."""

import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from common.problems import InputProblem

# Below this length an ending would tell too much of a key.
SHORTEST_WITH_HINT = 12
HINT = 4


class KeyUnreadable(InputProblem):
    """A stored key that cannot be decrypted: the encryption key is another one than when it was stored."""


class Secret(str):
    """A key in memory: printed, logged or shown in a traceback it hides itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[key]'"


def encrypt(secret: str) -> str:
    """Return a key as it is stored; the same key looks different each time."""
    return _cipher().encrypt(secret.encode()).decode()


def decrypt(stored: str, *, name: str) -> Secret:
    """Return a stored key of the endpoint of this name. Raises KeyUnreadable."""
    if not stored:
        return Secret()
    try:
        return Secret(_cipher().decrypt(stored.encode()).decode())
    except InvalidToken:
        raise KeyUnreadable(
            f"the key of {name} cannot be decrypted, because the encryption key of this server has changed: "
            "enter the key again"
        ) from None


def key_hint(secret: str) -> str:
    """Return the ending by which its owner knows a key; "" for a short one.

    Examples
    --------
    >>> key_hint("sk-0123456789abcd"), key_hint("short")
    ('abcd', '')
    """
    return secret[-HINT:] if len(secret) >= SHORTEST_WITH_HINT else ""


def _cipher() -> MultiFernet:
    keys = list(settings.LACE_ENDPOINT_KEYS) or [_file_key(Path(settings.LACE_ENDPOINT_KEY_FILE))]
    return MultiFernet([Fernet(key) for key in keys])


def _file_key(path: Path) -> str:
    """Return the key in this file, which only its owner may read; create it on first use."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # another process may have been first: its key stays
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii").strip()
