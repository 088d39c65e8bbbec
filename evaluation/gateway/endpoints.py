"""What an endpoint is: the one in the settings, the embedded model, or one that a lead connected."""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from common.addresses import AddressPolicy
from common.problems import OPERATOR, FieldProblem, InputProblem
from evaluation.gateway.embedded import model_sha256
from evaluation.gateway.keys import Secret

MAX_REPLY_BYTES = 1_000_000
LONGEST_ADDRESS = 200
CONNECT_TIMEOUT = 10.0  # seconds
# The simulated judge of demo workspaces, in place of a base URL.
SIMULATED = "simulated:"
OPENAI_BASE_URL = "https://api.openai.com/v1"
_API_VERSION = re.compile(r"api-version=[\w.-]{1,40}")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class EndpointError(InputProblem, ValueError):
    """An unusable address or key; the message says what is wrong, who mends it, and hides the key."""

    def __init__(self, problem: str, *, setting: str) -> None:
        super().__init__(f"{problem}: ask {OPERATOR} to correct it", settings=(setting,))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where model calls go.

    `id` is part of every call's content address: the normalised base URL, or `embedded:` + SHA-256 of the
    GGUF, never the embedded server's changing port. `base_url` is empty for the embedded model; callers get
    it from `embedded.ensure_running`. `query` follows every path: Azure's classic addresses name a version
    of the API there. `name` is empty for the server's own endpoint, else the one that a lead gave; such an
    endpoint has a `guard`, which says where its address may lead. `models` are those that it offers, the
    default first; empty leaves it to the settings. The limits hold for all workers together.
    """

    id: str
    base_url: str
    api_key: str = field(repr=False)
    embedded: bool
    query: str = ""
    name: str = ""
    guard: AddressPolicy | None = None
    models: tuple[str, ...] = ()
    batch: bool = True
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_in_flight: int | None = None

    def slots(self, most: int) -> int:
        """Return how many requests of a process that has `most` slots may be in flight here."""
        # The embedded server has one slot: a second call in flight would only wait there.
        return 1 if self.embedded else min(most, self.max_in_flight or most)

    @property
    def simulated(self) -> bool:
        """Return whether the simulated judge of a demo workspace answers."""
        return self.id == SIMULATED

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that holds the key; none without a key."""
        if not self.api_key:
            return {}
        # Azure's classic addresses take a key in a header of its own; a Bearer token is another thing there.
        return {"api-key": str(self.api_key)} if self.query else {"Authorization": f"Bearer {self.api_key}"}

    def url(self, path: str, *, base_url: str = "") -> str:
        """Return the address of a path, such as /chat/completions."""
        return f"{base_url or self.base_url}{path}{f'?{self.query}' if self.query else ''}"


def resolve_endpoint(*, base_url: str | None, api_key: str | None) -> Endpoint:
    """Return the endpoint that OPENAI_BASE_URL and OPENAI_API_KEY name; the embedded model without both.

    A key alone means api.openai.com; a URL alone needs no key. The version of Azure's API is no part of the
    id: stored answers stay valid. Raises EndpointError or EmbeddedModelMissing.
    """
    url, key = (base_url or "").strip(), _checked_key((api_key or "").strip())
    if not url and not key:
        return Endpoint(id=f"embedded:{model_sha256()}", base_url="", api_key="", embedded=True)
    address, _, query = (url or OPENAI_BASE_URL).partition("?")
    if query and not _API_VERSION.fullmatch(query):
        raise _bad_address("may hold ?api-version=… after its path, and no other ?")
    url = normalise_base_url(address)
    return Endpoint(id=url, base_url=url, api_key=Secret(key), embedded=False, query=query)


def endpoint_name(endpoint: str) -> str:
    """Return an endpoint's id as users know it.

    Examples
    --------
    >>> endpoint_name("embedded:5f3c"), endpoint_name("https://api.openai.com/v1")
    ('the embedded model', 'https://api.openai.com/v1')
    """
    if endpoint == SIMULATED:
        return "the simulated judge"
    return "the embedded model" if endpoint.startswith("embedded:") else endpoint


def normalise_base_url(url: str) -> str:
    """Return one spelling of a base URL: lower-case scheme and host, no default port, no final slash.

    Examples
    --------
    >>> normalise_base_url("HTTP://LocalHost:80/v1/")
    'http://localhost/v1'
    """
    parts = _parts(url)
    if isinstance(parts, str):
        raise _bad_address(parts)
    return _spelled(parts)


def entered_base_url(url: str, *, guard: AddressPolicy) -> str:
    """Return one spelling of a base URL that a lead entered. Raises FieldProblem for one that is not allowed.

    Examples
    --------
    >>> entered_base_url("https://api.openai.com/v1/", guard=AddressPolicy())
    'https://api.openai.com/v1'
    """
    parts = _parts(url.strip())
    problem = parts if isinstance(parts, str) else ""
    if isinstance(parts, str) or (problem := guard.host_problem(parts.hostname or "")):
        raise FieldProblem("address", problem)
    if len(spelled := _spelled(parts)) > LONGEST_ADDRESS:
        raise FieldProblem("address", f"must have at most {LONGEST_ADDRESS} characters")
    return spelled


def entered_url(url: str, *, guard: AddressPolicy, longest: int) -> str:
    """Return an address that a lead entered, as it is: its path and query are the receiver's own.

    Raises FieldProblem for one that is not allowed.

    Examples
    --------
    >>> entered_url(" https://ab.example.com/lace/?source=1 ", guard=AddressPolicy(), longest=500)
    'https://ab.example.com/lace/?source=1'
    """
    url = url.strip()
    address, _, query = url.partition("?")
    parts = _parts(address)
    problem = parts if isinstance(parts, str) else guard.host_problem(parts.hostname or "")
    if not problem and ("#" in query or unprintable(query)):
        problem = "must not hold #, spaces or characters that are not ASCII"
    if not problem and len(url) > longest:
        problem = f"must have at most {longest} characters"
    if problem:
        raise FieldProblem("address", problem)
    return url


def _parts(url: str) -> SplitResult | str:
    """Return the parts of a usable address, or what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a web address"
    if port == 0:
        return "must not name port 0"
    return _parts_problem(parts) or parts


def _spelled(parts: SplitResult) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _bad_address(problem: str) -> EndpointError:
    return EndpointError(f"the endpoint's address {problem}", setting="OPENAI_BASE_URL")


def _parts_problem(parts: SplitResult) -> str:
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return "must start with http:// or https:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or password; the key has its own setting"
    if parts.query or parts.fragment:
        return "must end with its path, without ? and #"
    if unprintable(parts.geturl()):
        return "holds a space or a character that is not ASCII"
    return ""


def _checked_key(key: str) -> str:
    # NB: an unprintable key would fail deep inside the HTTP library, with the key in the traceback.
    if unprintable(key):
        problem = "the endpoint's key holds a space, a line break or a character that is not ASCII"
        raise EndpointError(problem, setting="OPENAI_API_KEY")
    return key


def unprintable(text: str) -> bool:
    """Return whether a text holds a space or a character that a header or an address cannot hold."""
    return any(not 33 <= ord(character) < 127 for character in text)
