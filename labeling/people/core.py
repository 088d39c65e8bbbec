"""The kinds of audit events, by their verb: a noun and a past participle; clients and ways to sign in."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of events: those whose verb has one of these endings, else one of these beginnings."""

    key: str
    label: str
    beginnings: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()

    def begins(self, verb: str) -> bool:
        """Whether the verb is about one of the kind's nouns."""
        return any(verb == noun or verb.startswith(f"{noun} ") for noun in self.beginnings)


KINDS = (
    EventKind("exports", "Exports", ("archive",), (" exported", " downloaded")),
    EventKind("imports", "Imports and chat sets", ("import", "chats", "kind"), (" imported",)),
    EventKind("opened", "Holdout and reveals", ("holdout", "verdicts")),
    EventKind(
        "access",
        "Accounts and access",
        (
            "account",
            "group",
            "invitation",
            "password",
            "personal-data",
            "reset-link",
            "role",
            "roles",
            "second-factor",
            "sessions",
            "sign-on",
            "token",
        ),
    ),
    EventKind("sign-ins", "Sign-ins", ("sign-in", "sign-out")),
    EventKind(
        "releases", "Gate and releases", ("certificate", "champion", "gate", "policy", "profile", "release")
    ),
    EventKind(
        "labels",
        "Labels and jobs",
        ("adjudication", "job", "label", "night", "note", "raters"),
    ),
    EventKind("agents", "Proposals of agents", ("draft",)),
    EventKind(
        "texts",
        "Rubrics and guidelines",
        ("criterion", "definition", "dimension", "dimensions", "guideline", "redesign", "rubric", "wording"),
    ),
    EventKind(
        "settings",
        "Settings and connections",
        (
            "alert settings",
            "demo",
            "endpoint",
            "event",
            "events",
            "experiment",
            "plan",
            "secret",
            "settings",
            "topic prompt",
            "webhook",
        ),
    ),
    EventKind("production", "Alerts and issues", ("alert", "alerts", "bot", "issue", "issues")),
)
# Entries of these are deleted after a time; the database refuses it for all others.
SIGN_IN_VERBS = ("sign-in succeeded", "sign-in failed", "sign-in blocked", "sign-out done")
# An object as addresses name it: labeling.labelingjob:3
OBJECT_PATTERN = r"^[a-z_]+\.[a-z_]+:[0-9]{1,18}$"
KINDS_BY_KEY = {kind.key: kind for kind in KINDS}


def kind_of(verb: str) -> str:
    """
    Return the key of the kind of an event; "" for a verb of no kind.

    Examples
    --------
    >>> kind_of("roles changed"), kind_of("set exported"), kind_of("alert settings changed")
    ('access', 'exports', 'settings')
    """
    for kind in KINDS:
        if any(verb.endswith(ending) for ending in kind.endings):
            return kind.key
    return next((kind.key for kind in KINDS if kind.begins(verb)), "")


def endings_of_others(key: str) -> Iterator[str]:
    """Yield the endings that put a verb into another kind, whatever its noun."""
    for kind in KINDS:
        if kind.key != key:
            yield from kind.endings


# Part of a browser's own description and its name; the first that is found counts.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_name(description: str) -> str:
    """
    Return a browser's name from its header User-Agent; "" for none.

    Examples
    --------
    >>> browser_name("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0")
    'Firefox on Linux'
    >>> browser_name("curl/8.5.0")
    'curl/8.5.0'
    """
    browser = next((name for part, name in _BROWSERS if part in description), "")
    system = next((name for part, name in _SYSTEMS if part in description), "")
    return " on ".join(filter(None, (browser, system))) or description[:60]


def client_address(*, forwarded: str, remote: str, proxies: int) -> str:
    """
    Return the address of a client behind `proxies` trusted proxies; "" where none can be read.

    forwarded : the header X-Forwarded-For, to which each proxy appends whom it answers. What stands before
        the addresses of the trusted proxies is the client's own claim.
    remote : the other end of the connection.

    Examples
    --------
    >>> client_address(forwarded="6.6.6.6, 192.0.2.7", remote="10.0.0.1", proxies=1)
    '192.0.2.7'
    >>> client_address(forwarded="6.6.6.6", remote="192.0.2.7", proxies=0)
    '192.0.2.7'
    >>> client_address(forwarded="192.0.2.7", remote="10.0.0.1", proxies=2)
    '192.0.2.7'
    """
    sent = [part.strip() for part in forwarded.split(",") if part.strip()]
    if proxies and sent and (found := _address(sent[-min(proxies, len(sent))])):
        return found
    return _address(remote)


def _address(text: str) -> str:
    """Return an address without port; an IPv4 address inside an IPv6 one as itself."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    inner = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(inner or found)


_WAYS = {
    "password": "password",
    "password_reset": "link that sets a password",
    "socialaccount": "single sign-on",
    "totp": "authenticator app",
    "webauthn": "passkey",
    "recovery_codes": "recovery code",
}


def sign_in_ways(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """
    Return in words what a sign-in was made with, from allauth's records of its steps.

    Examples
    --------
    >>> sign_in_ways([{"method": "password"}, {"method": "mfa", "type": "totp"}])
    ['password', 'authenticator app']
    """
    keys = [
        str(one.get("type") or one.get("method", "")) for one in records if not one.get("reauthenticated")
    ]
    return list(dict.fromkeys(_WAYS.get(key, key) for key in keys))
