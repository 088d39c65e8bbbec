"""How settings are read from the environment and .env: kinds of values, and what is said of bad ones."""

import os
import secrets
from hashlib import sha256
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

SHORTEST_SECRET = 16

env = environ.Env()
env.read_env(str(BASE_DIR / ".env"))


def data_dir() -> Path:
    """Return the folder for all data and keys: LACE_DATA_DIR, else `var` beside the code.

    A missing one is made. Raises OSError where that fails.
    """
    folder = BASE_DIR / str(env.str("LACE_DATA_DIR", default="var"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# As Django's own check of a deployment (security.W009).
SHORTEST_KEY, FEWEST_CHARACTERS, EXAMPLE_KEY = 50, 5, "django-insecure-"


def secret_key(folder: Path, *, production: bool, debug: bool) -> str:
    """Return SECRET_KEY, else a key created once in `folder`, readable by its owner only.

    In production every machine needs the same key, and a good one: raises ImproperlyConfigured without it,
    and where debug pages would show internals to strangers.
    """
    configured = str(env.str("SECRET_KEY", default=""))
    if production:
        _refuse_in_production(configured, debug=debug)
    if configured:
        return configured
    path = folder / "secret_key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(key := secrets.token_urlsafe(64))
    return key


def _refuse_in_production(key: str, *, debug: bool) -> None:
    where = "where HTTPS is on or ALLOWED_HOSTS names other machines"
    if debug:
        raise ImproperlyConfigured(f"DEBUG must be off {where}")
    make = 'create one with: python3 -c "import secrets; print(secrets.token_urlsafe(64))"'
    if not key:
        raise ImproperlyConfigured(f"SECRET_KEY must be set {where}; {make}")
    if len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_CHARACTERS or key.startswith(EXAMPLE_KEY):
        raise ImproperlyConfigured(f"SECRET_KEY must have {SHORTEST_KEY} random characters or more; {make}")


def positive(name: str, *, default: int) -> int:
    """Return an environment variable that must be a whole number above 0."""
    try:
        value = env.int(name, default=default)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {os.environ[name]!r}") from error
    if value <= 0:
        raise ImproperlyConfigured(f"{name} must be above 0, not {value}")
    return int(value)


def positive_or_none(name: str) -> int | None:
    """Return an environment variable that must be a whole number above 0; None where it is not set."""
    return positive(name, default=1) if env.str(name, default="").strip() else None


def count(name: str, *, default: int, least: int = 0) -> int:
    """Return an environment variable that must be a whole number, `least` or more."""
    text = str(env.str(name, default="")).strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number, {least} or more, not {text!r}")
    return int(text)


def site_url(*, required: bool) -> str:
    """Return SITE_URL, without a / at its end: the address at which users open the workbench."""
    address = str(env.str("SITE_URL", default="")).strip().rstrip("/")
    if not address and required:
        raise ImproperlyConfigured("EMAIL_URL needs SITE_URL: e-mails have links to the workbench")
    parts = urlsplit(address or "http://127.0.0.1:8000")
    named = bool(parts.hostname) and "," not in parts.netloc
    if parts.scheme not in ("http", "https") or not named or parts.query or parts.fragment:
        raise ImproperlyConfigured(
            f"SITE_URL must be an address such as https://lace.example.org, not {address!r}"
        )
    return parts.geturl()


def switch(name: str) -> bool:
    """Return an environment variable that is on or off; off when it is not set."""
    value = env.str(name, default="off").strip().lower()
    if value in ("on", "true", "yes", "1"):
        return True
    if value in ("off", "false", "no", "0", ""):
        return False
    raise ImproperlyConfigured(f"{name} must be on or off, not {value!r}")


def secret(name: str) -> str:
    """Return a secret that other programs send, or "": long enough that nobody guesses it."""
    value = str(env.str(name, default="")).strip()
    if value and len(value) < SHORTEST_SECRET:
        raise ImproperlyConfigured(f"{name} must have {SHORTEST_SECRET} characters or more")
    return value


def log_level(*, default: str) -> str:
    """Return LOG_LEVEL, the least level that our own loggers log."""
    name = str(env.str("LOG_LEVEL", default="") or default).upper()
    if name not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ImproperlyConfigured(f"LOG_LEVEL must be debug, info, warning, error or critical, not {name!r}")
    return name


def log_form(*, default: str) -> str:
    """Return LOG_FORMAT: json or text."""
    name = str(env.str("LOG_FORMAT", default="") or default).lower()
    if name not in ("json", "text"):
        raise ImproperlyConfigured(f"LOG_FORMAT must be json or text, not {name!r}")
    return name


def time_zone() -> str:
    """Return TIME_ZONE, which defines the limits of days."""
    name = str(env.str("TIME_ZONE", default="UTC"))
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ImproperlyConfigured(f"TIME_ZONE names no time zone: {name!r}") from error
    return name


def networks(name: str) -> list[str]:
    """Return the networks that a setting lists, such as 10.0.0.0/8,192.168.0.0/16."""
    texts = [text.strip() for text in env.list(name, default=[]) if text.strip()]
    for text in texts:
        try:
            ip_network(text)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} lists no network: {error}") from error
    return texts


def fernet_keys(name: str) -> list[str]:
    """Return the encryption keys that a setting lists."""
    keys = [key.strip() for key in env.list(name, default=[]) if key.strip()]
    for number, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            problem = f"{name}: key {number} must be 32 bytes in URL-safe Base64"
            raise ImproperlyConfigured(problem) from None
    return keys


def one_of(name: str, *values: str) -> str:
    """Return an environment variable with one of these values; the first one when it is not set."""
    value = str(env.str(name, default="")).strip().lower() or values[0]
    if value not in values:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(values)}, not {value!r}")
    return value


def domains(name: str) -> list[str]:
    """Return the e-mail domains that a setting lists, such as example.org,example.com."""
    found = [text.strip().lower() for text in env.list(name, default=[]) if text.strip()]
    for text in found:
        if "@" in text or "." not in text:
            raise ImproperlyConfigured(f"{name} lists no domain: {text!r}")
    return found


def sign_on_provider(issuer: str, label: str, *, loopback: bool) -> dict[str, Any]:
    """Return allauth's settings of the provider of single sign-on; none without an issuer.

    loopback : whether the server serves this machine alone; the provider may then be on it, without TLS.
    """
    if not issuer:
        return {}
    parts = urlsplit(issuer)
    if parts.scheme != "https" and not (loopback and parts.scheme == "http"):
        raise ImproperlyConfigured("LACE_SSO_ISSUER must start with https://")
    client = env.str("LACE_SSO_CLIENT_ID", default="")
    secret = env.str("LACE_SSO_CLIENT_SECRET", default="")
    if not client or not secret:
        raise ImproperlyConfigured("LACE_SSO_ISSUER needs LACE_SSO_CLIENT_ID and LACE_SSO_CLIENT_SECRET")
    app = {"provider_id": "sso", "name": label, "client_id": client, "secret": secret}
    return {
        "openid_connect": {
            "OAUTH_PKCE_ENABLED": True,
            "APPS": [{**app, "settings": {"server_url": issuer, "oauth_pkce_enabled": True}}],
        }
    }


def static_mark() -> str:
    """Return a hash of our scripts and styles, so that browsers may cache them for ever."""
    digest = sha256()
    for path in sorted(BASE_DIR.glob("*/static/**/*")):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]
