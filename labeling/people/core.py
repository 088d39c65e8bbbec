"""The kinds of audit events, by their verb: a noun and a past participle; names of browsers."""

from collections.abc import Iterator
from dataclasses import dataclass


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
            "reset-link",
            "role",
            "roles",
            "second-factor",
            "sessions",
            "sign-on",
            "token",
        ),
    ),
    EventKind(
        "releases", "Gate and releases", ("certificate", "champion", "gate", "policy", "profile", "release")
    ),
    EventKind(
        "labels",
        "Labels and jobs",
        ("adjudication", "job", "label", "night", "note", "raters"),
    ),
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
